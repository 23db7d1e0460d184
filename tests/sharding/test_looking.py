"""Pictures of shardings, and the shardings that the compiler chooses inside of programs, compared with jax's."""

import io
import xml.etree.ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import purax as px
import purax.numpy as pnp
from purax.sharding import NamedSharding, PartitionSpec

P = PartitionSpec


@pytest.fixture(scope="module")
def mesh():
    return px.make_mesh((4, 2), ("x", "y"))


def picture(capsys, *args, **options):
    px.debug.visualize_sharding(*args, **options)
    return capsys.readouterr().out


def test_two_axes(mesh, capsys):
    assert picture(capsys, (8, 6), NamedSharding(mesh, P("x", "y")), min_width=7) == (
        "┌───────┬───────┐\n│ CPU 0 │ CPU 1 │\n├───────┼───────┤\n│ CPU 2 │ CPU 3 │\n"
        "├───────┼───────┤\n│ CPU 4 │ CPU 5 │\n├───────┼───────┤\n│ CPU 6 │ CPU 7 │\n└───────┴───────┘\n"
    )


def test_copies_are_listed_and_runs_shortened(mesh, capsys):
    assert "│ CPU 0,2,4,6 │\n" in picture(capsys, (8, 6), NamedSharding(mesh, P("y")))
    assert "│ CPU 0-7 │" in picture(capsys, (8,), NamedSharding(mesh, P()))
    assert "│ CPU 0-7 │" in picture(capsys, (), NamedSharding(mesh, P()))
    assert "│ CPU 0,1 │ CPU 2,3 │" in picture(capsys, (8,), NamedSharding(mesh, P("x")))


def test_more_axes_are_drawn_one_after_the_other(mesh, capsys):
    text = picture(capsys, (4, 3, 8), NamedSharding(mesh, P("y", None, "x")))
    assert text.startswith("[0:2, :, :]\n┌") and "\n[2:4, :, :]\n┌" in text
    assert text.count("CPU") == 8


def test_widths(mesh, capsys):
    sharding = NamedSharding(mesh, P(None, ("x", "y")))
    assert all(len(line) <= 40 for line in picture(capsys, (8, 64), sharding, max_width=40).splitlines())
    narrow = picture(capsys, (8, 64), NamedSharding(mesh, P("y")), max_width=9)
    assert all(len(line) <= 9 for line in narrow.splitlines()) and "2,4,6" in narrow
    assert picture(capsys, (8, 8), sharding, scale=3.0).count("\n") == 5


class Terminal(io.StringIO):
    def __init__(self, encoding="utf-8"):
        super().__init__()
        self._encoding = encoding

    encoding = property(lambda self: self._encoding)

    def isatty(self):
        return True


def test_colours_only_on_terminals(mesh, capsys, monkeypatch):
    sharding = NamedSharding(mesh, P("x"))
    assert "\x1b" not in picture(capsys, (8, 8), sharding)
    monkeypatch.delenv("NO_COLOR", raising=False)
    for options, colored in (({}, True), ({"use_color": False}, False)):
        terminal = Terminal()
        monkeypatch.setattr("sys.stdout", terminal)
        px.debug.visualize_sharding((8, 8), sharding, **options)
        assert ("\x1b[30;48;2;" in terminal.getvalue()) == colored
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    px.debug.visualize_sharding((8, 8), sharding, color_map=lambda t: (t, 0, 1, 1))
    assert "48;2;0;0;255m" in terminal.getvalue() and "48;2;255;0;255m" in terminal.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout", terminal := Terminal())
    px.debug.visualize_sharding((8, 8), sharding)
    assert "\x1b" not in terminal.getvalue()


def test_plain_letters_where_there_are_no_others(mesh, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout", terminal := Terminal("ascii"))
    px.debug.visualize_sharding((8, 8), NamedSharding(mesh, P(None, "y")), min_width=3)
    assert terminal.getvalue().splitlines()[0] == "+-------------+-------------+"


def test_image(mesh, tmp_path, capsys):
    path = tmp_path / "picture.svg"
    x = px.device_put(np.zeros((8, 6)), NamedSharding(mesh, P("x", "y")))
    px.debug.visualize_array_sharding(x, image=path)
    root = xml.etree.ElementTree.parse(path).getroot()
    texts = [e.text for e in root if e.tag.endswith("text")]
    assert texts == [f"CPU {i}" for i in range(8)] and capsys.readouterr().out == ""
    assert len({e.get("fill") for e in root if e.tag.endswith("rect")}) == 8
    titles = px.debug.sharding_svg((4, 3, 8), NamedSharding(mesh, P("y")))
    assert "[2:4, :, :]" in titles


def test_not_a_sharding(mesh):
    with pytest.raises(TypeError, match="needs a sharding, got 3 of type int"):
        px.debug.visualize_sharding((8,), 3)
    with pytest.raises(ValueError, match="does not divide"):
        px.debug.visualize_sharding((7,), NamedSharding(mesh, P("x")))
    with pytest.raises(TypeError, match="callback must be a function"):
        px.debug.inspect_array_sharding(pnp.ones(3), callback=None)


# --- inside of programs


def program(module, numpy, see):
    inspect = lambda x, name: module.debug.inspect_array_sharding(x, callback=lambda s: see(name, s))  # noqa: E731

    def f(x, w):
        inspect(x, "argument")
        h = x @ w
        inspect(h, "product")

        @module.jit
        def inner(h):
            inspect(h.T, "inside a jit")
            return numpy.sin(h).sum(0)

        y = inner(h)
        inspect(y, "sum")

        def body(carry, row):
            inspect(carry, "carry")
            return carry + row, None

        out, _ = module.lax.scan(body, y, h)
        return out * 2

    return f


def choices(module, numpy, mesh):
    """What the program gives, and the shardings that it shows by name."""
    seen = {}
    layout = lambda *spec: module.sharding.NamedSharding(mesh, module.sharding.PartitionSpec(*spec))  # noqa: E731
    x = module.device_put(np.arange(64, dtype=np.float32).reshape(8, 8), layout("x"))
    w = module.device_put(np.ones((8, 4), np.float32), layout(None, "y"))
    result = module.jit(program(module, numpy, seen.__setitem__))(x, w)
    return np.asarray(result), seen


def test_compilers_choice_is_that_of_jax(mesh):
    theirs_mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    (result, ours), (expected, theirs) = choices(px, pnp, mesh), choices(jax, jnp, theirs_mesh)
    np.testing.assert_allclose(result, expected, rtol=2e-5)
    assert ours.keys() == theirs.keys() == {"argument", "product", "inside a jit", "sum", "carry"}
    for name, sharding in ours.items():
        shape = {1: (4,), 2: (8, 8)}[1 if name in ("sum", "carry") else 2]
        tiles = [[s.indices(n)[:2] for s, n in zip(index, shape, strict=True)]
                 for index in sharding.devices_indices_map(shape).values()]  # fmt: skip
        wanted = [[s.indices(n)[:2] for s, n in zip(index, shape, strict=True)]
                  for index in theirs[name].devices_indices_map(shape).values()]  # fmt: skip
        assert tiles == wanted, name


def test_under_other_transformations(mesh):
    seen = []

    def f(x):
        px.debug.inspect_array_sharding({"y": pnp.sin(x)}, callback=seen.append)
        return (x * 2).sum()

    x = px.device_put(np.ones((8, 8), np.float32), NamedSharding(mesh, P("x")))
    np.testing.assert_allclose(px.jit(px.grad(f))(x), 2.0)
    np.testing.assert_allclose(px.jit(px.vmap(f))(x), 16.0)
    assert [s.spec for s in seen] == [P("x", None)] * 2
    seen.clear()
    assert f(x) == 128.0 and seen == [NamedSharding(mesh, P("x"))]
    seen.clear()
    assert px.jit(f)(1.0) == 2.0 and seen[0].device_set == set(px.devices()[:1])


def test_pictures_inside_of_programs(mesh, capsys):
    x = px.device_put(np.ones((8, 8), np.float32), NamedSharding(mesh, P("x")))

    @px.jit
    def f(x):
        px.debug.visualize_array_sharding(x.T)
        return x

    f(x), f(x)
    text = capsys.readouterr().out
    assert text.count("CPU") == 4 and "│ CPU 0,1 │ CPU 2,3 │" in text
    assert "purax.inspected" not in px.jit(lambda x: f(x) + 1).lower(x).as_text()
