"""Where each data set comes from: its publisher, licence and size, and what of it is needed here."""

from __future__ import annotations

from dataclasses import dataclass

_UCI = "https://archive.ics.uci.edu"


@dataclass(frozen=True)
class Origin:
    """What an outsider needs to know to get a data set.

    Attributes:
        page: Where the publisher tells of it.
        licence: As the publisher states it.
        size: Of what has to be downloaded.
        files: Those of the publisher's files that ``ahop-paper prepare`` reads; none where nothing is prepared.
        url: What can be downloaded without an account; None if it has to be fetched by hand.
        values: The checksum of the prepared values, whatever they are packed in, of the copy that the results were made
            with.
        note: What else to know.
    """

    page: str
    licence: str
    size: str
    files: tuple[str, ...] = ()
    url: str | None = None
    values: str = ""
    note: str = ""


ADULT = Origin(
    f"{_UCI}/dataset/2/adult",
    "CC BY 4.0",
    "6 MB in two files",
    ("adult.data", "adult.test"),
    f"{_UCI}/static/public/2/adult.zip",
    "c5b70c2224ae742b3f6492440b0128afd28652f28fad3df5f3d65a6e29df185d",
)
BANK = Origin(
    f"{_UCI}/dataset/222/bank+marketing",
    "CC BY 4.0",
    "6 MB",
    ("bank-additional-full.csv",),
    f"{_UCI}/static/public/222/bank+marketing.zip",
    "f3318df31371badfd126bcb2bcf191d8d283a5ce1e9eb7defe5ea139fd8b0765",
)
VACCINE = Origin(
    "https://www.drivendata.org/competitions/66/flu-shot-learning/data/",
    "public-use data of the NCHS, for statistical analysis alone",
    "5 MB in two files",
    ("training_set_features.csv", "training_set_labels.csv"),
    values="a606f7f01174d2e2d684259ea5219fa890a90b44c8fe739575d783ed82b1a308",
    note="Downloads need an account at DrivenData.",
)
PURCHASE = Origin(
    f"{_UCI}/dataset/468/online+shoppers+purchasing+intention+dataset",
    "CC BY 4.0",
    "1 MB",
    ("online_shoppers_intention.csv",),
    f"{_UCI}/static/public/468/online+shoppers+purchasing+intention+dataset.zip",
    "8fda47fd4221aa0df520e86f8a88f9888f9be9158fbb08d1633dc76e9ca06001",
)
HEART = Origin(
    "https://www.kaggle.com/datasets/sulianova/cardiovascular-disease-dataset",
    "not stated by its author",
    "3 MB",
    ("cardio_train.csv",),
    values="df0bf2fc71bd623b07018b5977fd90dc47595eafd889f18b481216059c50b444",
    note="Downloads need an account at Kaggle.",
)


def _corel(animal: str, values: str) -> Origin:
    return Origin(
        "http://www.cs.columbia.edu/~andrews/mil/datasets.html",
        "no licence text (features of Corel images)",
        "an archive with the bags of all animals",
        (f"{animal}/data_100x100.svm",),
        "http://www.cs.columbia.edu/~andrews/mil/data/MIL-Data-2002-Musk-Corel-Trec9.tgz",
        values,
    )


TIGER = _corel("Tiger", "cf9648920a17aadea70ebc8ee884fbb78b04609b8c92b457e29cf24973a9b02f")
FOX = _corel("Fox", "0e4cb0c9a6d9531176787e9f12f57b29aaa06a490ea5d24c5594291dfecb7723")
ELEPHANT = _corel("Elephant", "13e74c7ab4f571d68126d0ec0d2dcf8c062903047de305b4d0651285df959a50")
UCSB = Origin(
    "https://figshare.com/articles/dataset/MIProblems_A_repository_of_multiple_instance_learning_datasets/6633983",
    "not stated (features of the UCSB Bio-Segmentation images)",
    "one file of the repository MIProblems",
    ("ucsb_breast.mat",),
    values="462449a790a3d1300afc3c961c05138e07b720ec026b2962710f36f89bf4e142",
)
MUSK1 = Origin(
    f"{_UCI}/dataset/74/musk+version+1",
    "CC BY 4.0",
    "less than 1 MB",
    ("clean1.data",),
    f"{_UCI}/static/public/74/musk+version+1.zip",
    "84e04c3189dc8dfa267edf03adfef8ebe4faad0c979b2ae50f79f75fc51c1296",
)
MUSK2 = Origin(
    f"{_UCI}/dataset/75/musk+version+2",
    "CC BY 4.0",
    "a few MB",
    ("clean2.data",),
    f"{_UCI}/static/public/75/musk+version+2.zip",
    "6217085fe255b938720d27316297f5a92f69ff18123c135aaf703215ebf6894b",
)
TABLETS = Origin(
    "https://eigenvector.com/resources/data-sets/",
    "freely downloadable; no terms known",
    "a few MB",
    ("nir_shootout_2002.mat",),
    "http://www.eigenvector.com/data/tablets/nir_shootout_2002.mat",
    "2dd94b4a1732c699f1f815935fc7b64922f9b029ef28b1ecd587d1d23c7faa4b",
)
GAS = Origin(
    f"{_UCI}/dataset/270/gas+sensor+array+drift+dataset+at+different+concentrations",
    "CC BY 4.0",
    "some 20 MB",
    tuple(f"batch{number}.dat" for number in (1, 2, 3, 4, 5, 6, 8, 9)),
    f"{_UCI}/static/public/270/gas+sensor+array+drift+dataset+at+different+concentrations.zip",
    "af9eb99996811eab5207e8f56ef08a0966ec930f5eb1db9cb8fa30cf649b4abc",
    note="Batches 7 and 10 are left out, as in the results of this project.",
)
WIFI = Origin(
    f"{_UCI}/dataset/310/ujiindoorloc",
    "CC BY 4.0",
    "1.5 MB",
    ("trainingData.csv", "validationData.csv"),
    f"{_UCI}/static/public/310/ujiindoorloc.zip",
    "d15b11d9b5ee8d44d8c6397c44a2e77ba9a4b1df34651e117a223a30952252e2",
)
MS2 = Origin(
    "https://github.com/MassBank/MassBank-data/releases (2025-05)",
    "CC BY, CC0 or dl-de/by-2-0, record by record; records under other licences are left out",
    "an archive of some hundred thousand records",
    ("MSBNK-*.txt",),
    values="de051295cdc118992b3d34520df111af262403fcbe2606d042448934bd71fe0f",
    note="Give the archive, or the unpacked folder of all laboratories. Another release gives other spectra.",
)
EMBEDDINGS = Origin(
    "made for this project from the CIFAR-10 test images",
    "as CIFAR-10",
    "15 MB",
    note="Not published elsewhere: it has to come with a copy of this project's data folder.",
)
MNIST = Origin("http://yann.lecun.com/exdb/mnist/", "CC BY-SA 3.0", "11 MB")
CIFAR = Origin("https://www.cs.toronto.edu/~kriz/cifar.html", "no licence text", "170 MB")
TINY = Origin(
    "http://cs231n.stanford.edu/", "non-commercial research, by the terms of ImageNet", "250 MB, unpacked in memory"
)
