"""What was learned, said of the rows and columns of two tables."""

import torch

from ahop.linkage.rows import briefly, sentences
from ahop.similarity import Likelihood


def shifted():
    likelihood = Likelihood(3)
    likelihood.bias.data.copy_(torch.tensor([0.0, 5.0, 0.0]))
    return likelihood


def test_sentences_name_columns_as_the_table_does():
    assert any("most in size, by +5" in line for line in sentences(shifted(), ("weight", "size", "column 1")))
    assert any("most in column 1, by +5" in line for line in sentences(shifted()))


def test_in_brief_it_is_the_first_sentence_and_the_one_that_names_a_column():
    for names in (("weight", "size", "age"), ("0", "1", "2")):
        first, *others = sentences(shifted(), names)
        (naming,) = (line for line in others if f"in {names[1]}," in line)
        assert briefly(shifted(), names) == f"{first} {naming}"
    assert briefly(Likelihood(3), names) == sentences(Likelihood(3))[0]
