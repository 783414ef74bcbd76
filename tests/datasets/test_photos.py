import hashlib
import io
import tarfile
import zipfile

import numpy as np
import pytest
import torch
from PIL import Image

from ahop import datasets
from ahop.datasets import photos
from ahop.datasets.files import DataFile


@pytest.fixture
def known(tmp_path, monkeypatch):
    """A data folder of one's own."""
    monkeypatch.setenv("AHOP_DATA", str(tmp_path))
    return tmp_path


def write_sheets(folder, part, count, draw):
    pixels = draw.integers(0, 256, (count * 1000, 32, 32, 3), dtype=np.uint8)
    for number in range(count):
        tiles = pixels[number * 1000 : (number + 1) * 1000].reshape(25, 40, 32, 32, 3)
        Image.fromarray(tiles.swapaxes(1, 2).reshape(800, 1280, 3)).save(
            folder / f"{part}_{number:02d}.webp", lossless=True, method=0, quality=0
        )
    return pixels


def test_sheets_of_photographs(known, monkeypatch):
    folder, draw = known / "cifar10", np.random.default_rng(0)
    folder.mkdir()
    train, test = (write_sheets(folder, part, 1, draw) for part in ("train", "test"))
    labels = np.arange(1000) % 10
    np.savez(folder / "labels.npz", train=labels, test=labels, names=np.array(["plane", "car"]))
    digest = hashlib.sha256((folder / "labels.npz").read_bytes()).hexdigest()
    monkeypatch.setattr(photos, "COMPACT_CIFAR10", DataFile("cifar10/labels.npz", (digest,)))
    sums = tuple(hashlib.sha256(pixels.tobytes()).hexdigest() for pixels in (train, test))
    monkeypatch.setitem(photos._PIXELS, "cifar10", sums)
    loaded = photos.cifar10()
    assert np.array_equal(loaded.train.numpy(), train)
    assert np.array_equal(loaded.test.numpy(), test)
    assert loaded.names == ["plane", "car"]
    monkeypatch.setitem(photos._PIXELS, "cifar10", (sums[1], sums[0]))
    with pytest.raises(ValueError, match="is damaged: the train images are not the ones expected"):
        photos.cifar10()
    (folder / "test_00.webp").unlink()
    monkeypatch.setitem(photos._PIXELS, "cifar10", sums)
    with pytest.raises(ValueError, match="is damaged: 0 sheets of test images, fewer than expected"):
        photos.cifar10()


@pytest.mark.parametrize("labels", [1, 2])
def test_the_published_archive_of_photographs(known, monkeypatch, labels):
    draw = np.random.default_rng(0)
    records = draw.integers(0, 10, (6, labels + 3072), dtype=np.uint8)
    files = {f"data_batch_{number}.bin": records[number - 1 : number].tobytes() for number in range(1, 6)}
    files |= {"train.bin": records[:5].tobytes(), "test.bin": records[5:].tobytes()}
    files |= {"test_batch.bin": records[5:].tobytes(), "batches.meta.txt": b"a\nb\n", "fine_label_names.txt": b"a\nb\n"}
    name, constant = ("cifar-10", "CIFAR10") if labels == 1 else ("cifar-100", "CIFAR100")
    path = known / f"{name}-binary.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for member, content in files.items():
            entry = tarfile.TarInfo(f"folder/{member}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    monkeypatch.setattr(photos, constant, DataFile(path.name, (hashlib.sha256(path.read_bytes()).hexdigest(),)))
    loaded = photos.cifar10() if labels == 1 else photos.cifar100()
    assert loaded.train.shape == (5, 32, 32, 3)
    assert loaded.train_labels.tolist() == records[:5, labels - 1].tolist()
    assert loaded.test[0, 3, 7].tolist() == records[5, labels:].reshape(3, 32, 32)[:, 3, 7].tolist()
    assert loaded.names == ["a", "b"]


def jpeg(shade):
    file = io.BytesIO()
    Image.fromarray(np.full((64, 64), shade, np.uint8)).save(file, "JPEG")
    return file.getvalue()


def test_tiny_imagenet_from_either_form(known, monkeypatch):
    path, root = known / "tiny-imagenet-200.zip", "tiny-imagenet-200"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{root}/wnids.txt", "n2\nn1\n")
        archive.writestr(f"{root}/words.txt", "n1\tfish\nn2\tbird\n")
        archive.writestr(f"{root}/train/n1/images/n1_0.JPEG", jpeg(10))
        archive.writestr(f"{root}/train/n2/images/n2_0.JPEG", jpeg(200))
        archive.writestr(f"{root}/val/val_annotations.txt", "val_0.JPEG\tn2\t0\t0\t9\t9\n")
        archive.writestr(f"{root}/val/images/val_0.JPEG", jpeg(100))
    monkeypatch.setattr(photos, "TINY", DataFile(path.name, (hashlib.sha256(path.read_bytes()).hexdigest(),)))
    whole = photos.tiny_imagenet()
    files = {"train": [jpeg(10), jpeg(200)], "val": [jpeg(100)]}
    arrays = {"names": np.array(["fish", "bird"]), "train_y": np.array([0, 1]), "val_y": np.array([1])}
    for part, content in files.items():
        arrays[f"{part}_jpeg"] = np.frombuffer(b"".join(content), np.uint8)
        arrays[f"{part}_end"] = np.cumsum([len(one) for one in content])
    compact = known / "tiny_imagenet_subset.npz"
    np.savez(compact, **arrays)
    copy = DataFile(compact.name, (hashlib.sha256(compact.read_bytes()).hexdigest(),))
    monkeypatch.setattr(photos, "COMPACT_TINY", copy)
    for one, other in zip(whole, photos.tiny_imagenet(), strict=True):
        assert one == other if isinstance(one, list) else torch.equal(one, other)
    assert whole.train[:, 5, 5, 0].tolist() == [10, 200]
    assert whole.test_labels.tolist() == [1]


def test_a_copy_is_where_the_data_is(known):
    assert datasets.ENTRIES["cifar10"].where() == "to be downloaded"
    (known / "cifar10").mkdir()
    (known / "cifar10" / "labels.npz").touch()
    assert datasets.ENTRIES["cifar10"].where() == str(known / "cifar10")
