import sys

import pytest

from ahop._registry import Registry


def test_a_new_file_of_a_package_is_read_with_no_list_to_edit(tmp_path, monkeypatch):
    """As `ahop.datasets` and the commands are."""
    folder = tmp_path / "plants"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from ahop._registry import Registry, read_all\nKNOWN = Registry('plant')\nread_all(__name__, __path__)\n"
    )
    (folder / "fern.py").write_text("import sys\nsys.modules['plants'].KNOWN.add('fern', 'green')\n")
    monkeypatch.syspath_prepend(tmp_path)
    import plants

    assert plants.KNOWN == {"fern": "green"}
    for name in ("plants", "plants.fern"):
        monkeypatch.delitem(sys.modules, name)


def test_things_stay_in_the_order_in_which_they_came_and_are_refused_twice():
    known = Registry("tree")
    for name in ("oak", "ash"):
        assert known.register(name)(name.upper()) == name.upper()
    assert list(known) == ["oak", "ash"] and known.named("ash") == "ASH"
    with pytest.raises(ValueError, match="unknown tree 'elm'; known: 'oak', 'ash'"):
        known.named("elm")
    with pytest.raises(ValueError, match="tree 'oak' is known already; choose another name"):
        known.add("oak", "another")
    assert known["oak"] == "OAK"


def test_a_definition_that_is_run_again_replaces_itself():
    known = Registry("tree")

    def define(height):
        def oak():
            return height

        return oak

    def oak():
        return 0

    known.register("oak")(define(1))
    known.register("oak")(define(2))
    assert known["oak"]() == 2
    with pytest.raises(ValueError, match="tree 'oak' is known already"):
        known.register("oak")(oak)
