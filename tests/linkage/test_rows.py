"""What was learned, said of the rows and columns of two tables."""

import pytest
import torch

from ahop.linkage.rows import briefly, sentences
from ahop.similarity import Likelihood


def shifted():
    likelihood = Likelihood(3)
    likelihood.bias.data.copy_(torch.tensor([0.0, 5.0, 0.0]))
    return likelihood


NAMES = [("weight", "size", "age"), ("0", "1", "2"), ("patterns", "pattern size", "query"), ("a", "size\n(cm)", "b")]


@pytest.mark.parametrize("names", NAMES)
def test_sentences_name_columns_as_the_table_does(names):
    shown = " ".join(names[1].split())
    (naming,) = (line for line in sentences(shifted(), names) if "most in" in line)
    assert f"most in {shown}, by +5" in naming


@pytest.mark.parametrize("names", NAMES)
def test_in_brief_it_is_the_first_sentence_and_the_one_that_names_a_column(names):
    first, *others = sentences(shifted(), names)
    (naming,) = (line for line in others if "most in" in line)
    assert briefly(shifted(), names) == f"{first} {naming}"
    assert briefly(Likelihood(3), names) == sentences(Likelihood(3), names)[0]
