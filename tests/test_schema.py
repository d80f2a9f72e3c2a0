"""Configs: what is declared survives a round trip, and what is wrong is refused with a sentence."""

import contextlib
import copy
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from idrl.agents import agent_names, declared
from idrl.config import RunConfig, assignments, resolve
from idrl.envs import make_env
from idrl.errors import IdrlError
from idrl.schema import Part, build, merge, nested, parse_assignment, tables, to_dict

# The examples are fixed, so that a run of the tests says the same twice.
fuzz = settings(max_examples=300, deadline=None, derandomize=True)


# A small config of our own, so that these tests say what the rules are and not what agents have.


class Shape(Part, category="shape"):
    @abstractmethod
    def area(self): ...


@Shape.register("circle")
@dataclass(frozen=True)
class Circle(Shape):
    radius: float = 1.0

    def area(self):
        return 3 * self.radius**2


@Shape.register("polygon")
@dataclass(frozen=True)
class Polygon(Shape):
    sides: int = 3
    angles: tuple[float, ...] = ()

    def area(self):
        return 1.0

    def check(self, where: str) -> None:
        if self.sides < 3:
            raise IdrlError(f"{where}.sides is {self.sides}; it must be at least 3.")


@dataclass(frozen=True)
class Drawing:
    title: str
    shape: Shape
    colour: Literal["red", "blue"] = "red"
    filled: bool = False
    copies: Literal[1, 2] = 1
    layers: dict[str, Shape] = field(default_factory=dict)


FULL = {
    "title": "one",
    "shape": {"kind": "polygon", "sides": 4, "angles": [90.0, 90.0]},
    "colour": "blue",
    "filled": True,
    "copies": 2,
    "layers": {"top": {"kind": "circle", "radius": 2.0}},
}


# -- round trips -------------------------------------------------------------------------------


def test_build_and_to_dict_are_inverse():
    drawing = build(Drawing, FULL)
    assert drawing == Drawing(
        "one", Polygon(sides=4, angles=(90.0, 90.0)), "blue", True, 2, {"top": Circle(radius=2.0)}
    )
    assert to_dict(drawing) == FULL
    assert build(Drawing, to_dict(drawing)) == drawing


def test_defaults_fill_what_is_left_out():
    drawing = build(Drawing, {"title": "one", "shape": {"kind": "circle"}})
    assert drawing == Drawing("one", Circle())


@pytest.mark.parametrize("env", ["deep_sea/10", "cartpole", "acrobot", "gymnax/Pong-misc"])
@pytest.mark.parametrize("agent", agent_names())
def test_every_resolved_config_survives_a_round_trip(agent, env):
    config = resolve(agent, env)
    data = to_dict(config)
    assert build(RunConfig, data) == config
    assert to_dict(build(RunConfig, data)) == data
    assert (config.agent, config.env) == (agent, env)


@pytest.mark.parametrize("agent", agent_names())
def test_to_dict_is_plain_data(agent):
    def plain(value):
        if isinstance(value, dict):
            return all(isinstance(key, str) and plain(item) for key, item in value.items())
        if isinstance(value, list):
            return all(map(plain, value))
        return isinstance(value, (str, bool, int, float))

    assert plain(to_dict(declared(agent)))


def test_to_dict_shares_nothing_with_what_it_came_from():
    config = resolve("c51-ids", "deep_sea/10")
    before = to_dict(config)
    to_dict(config)["heads"]["q"]["hidden"].append(7)
    to_dict(config)["heads"].clear()
    assert to_dict(config) == before


# -- refusals ----------------------------------------------------------------------------------


def check_refused(data, sentence, cls=Drawing):
    with pytest.raises(IdrlError, match=sentence):
        build(cls, data)


def changed(**changes):
    return {**copy.deepcopy(FULL), **changes}


def test_unknown_keys_suggest_the_nearest():
    check_refused(changed(colr="red"), "unknown setting 'colr'; did you mean 'colour'?")
    check_refused(
        changed(shape={"kind": "polygon", "side": 4}),
        r"unknown setting 'shape\.side'; did you mean 'sides'?",
    )
    check_refused(
        changed(layers={"top": {"kind": "circle", "raduis": 4}}),
        r"unknown setting 'layers\.top\.raduis'; did you mean 'radius'?",
    )
    # Where nothing is near, all are named.
    check_refused(
        changed(xyzzy=1), "unknown setting 'xyzzy'; known: colour, copies, filled, layers"
    )
    check_refused(changed(**{"": 1}), "unknown setting ''")


def test_unknown_keys_of_real_configs_suggest_the_nearest():
    for text, suggestion in (
        ("explore.lamda=1", "lam"),
        ("heads.q.prior=1", "prior_scale"),
        ("learning.batchsize=1", "batch_size"),
        ("trainig.steps=1", "training"),
        ("optimiser.learning_rate=1", "."),  # nothing is close: all are named
    ):
        with pytest.raises(IdrlError, match=f"unknown setting .*{suggestion}"):
            resolve("c51-ids", "deep_sea/10", changes=assignments([text]))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"title": 3}, "title is 3; it must be a word"),
        ({"filled": 1}, "filled is 1; it must be true or false"),
        ({"filled": "yes"}, "filled is 'yes'; it must be true or false"),
        ({"colour": "green"}, "colour is 'green'; it must be one of 'red', 'blue'"),
        ({"colour": ["red"]}, r"colour is \['red'\]; it must be one of"),
        ({"colour": {}}, "colour is {}; it must be one of"),
        ({"copies": 3}, "copies is 3; it must be one of 1, 2"),
        ({"copies": True}, "copies is True; it must be one of 1, 2"),  # although True == 1
        ({"shape": {"kind": "circle", "radius": "big"}}, r"shape\.radius is 'big'; .* a number"),
        ({"shape": {"kind": "circle", "radius": True}}, r"shape\.radius is True; .* a number"),
        ({"shape": {"kind": "circle", "radius": None}}, r"shape\.radius is None; .* a number"),
        ({"shape": {"kind": "circle", "radius": float("nan")}}, "must be a finite number"),
        ({"shape": {"kind": "circle", "radius": float("inf")}}, "must be a finite number"),
        ({"shape": {"kind": "polygon", "sides": 3.5}}, r"shape\.sides is 3\.5; .* whole number"),
        ({"shape": {"kind": "polygon", "sides": float("inf")}}, "whole number"),
        ({"shape": {"kind": "polygon", "sides": float("nan")}}, "whole number"),
        ({"shape": {"kind": "polygon", "sides": True}}, "whole number"),
        ({"shape": {"kind": "polygon", "sides": 2**60}}, "too large"),
        ({"shape": {"kind": "polygon", "sides": 2}}, r"shape\.sides is 2; it must be at least 3"),
        ({"shape": {"kind": "polygon", "angles": ["x"]}}, r"shape\.angles is 'x'; .* a number"),
        ({"shape": 3}, "shape must be a table of settings with a `kind`, not 3"),
        ({"layers": 3}, "layers must be a table of settings, not 3"),
        ({"layers": {"top": 3}}, r"layers\.top must be a table"),
    ],
)
def test_wrong_types_and_values(changes, sentence):
    check_refused(changed(**changes), sentence)


@pytest.mark.parametrize("data", [None, 3, "text", [], [("title", "x")]])
def test_a_config_that_is_no_table(data):
    check_refused(data, "the config must be a table of settings")


def test_a_missing_setting_is_named():
    check_refused({"shape": {"kind": "circle"}}, "the setting 'title' is missing")


def test_whole_floats_are_whole_numbers_and_whole_numbers_are_floats():
    shape = {"kind": "polygon", "sides": 4.0, "angles": 3}
    built = build(Drawing, changed(shape=shape)).shape
    assert built == Polygon(sides=4, angles=(3.0,))  # one item may stand without its list
    assert isinstance(built.sides, int)
    assert isinstance(built.angles[0], float)


def test_numbers_of_numpy_are_numbers():
    given = {"training": {"steps": np.int64(300)}, "learning": {"gamma": np.float32(0.5)}}
    config = resolve("dqn", "deep_sea/4", changes=[given | {"seed": np.uint8(3)}])
    steps, gamma = config.training.steps, config.learning.gamma
    assert (steps, gamma, config.seed) == (300, 0.5, 3)
    assert [type(x) for x in (steps, gamma, config.seed)] == [int, float, int]
    for wrong in (np.float32(2.5), np.bool_(True), np.float64(np.nan)):
        with pytest.raises(IdrlError, match="training.steps is .*; it must be a whole number"):
            resolve("dqn", "deep_sea/4", changes=[{"training": {"steps": wrong}}])


@pytest.mark.parametrize("huge", [10**400, -(10**400)], ids=["positive", "negative"])
def test_numbers_beyond_floats_are_refused(huge):
    # Python's whole numbers have no limit; converting one to a float raises OverflowError.
    check_refused(changed(shape={"kind": "polygon", "sides": huge}), "sides")
    check_refused(changed(shape={"kind": "circle", "radius": huge}), "radius")


# -- kinds -------------------------------------------------------------------------------------


def test_kind_picks_the_class():
    assert build(Drawing, changed(shape={"kind": "circle"})).shape == Circle()
    assert build(Drawing, changed(shape={"kind": "polygon"})).shape == Polygon()
    # Settings of one kind are unknown to the other.
    check_refused(changed(shape={"kind": "circle", "sides": 4}), r"unknown setting 'shape\.sides'")


def test_an_unknown_or_missing_kind():
    check_refused(
        changed(shape={"kind": "polygone"}),
        r"unknown shape\.kind 'polygone'; did you mean 'polygon'?",
    )
    check_refused(changed(shape={"kind": 3}), r"unknown shape\.kind '3'; known: circle, polygon")
    check_refused(changed(shape={}), r"shape\.kind is missing; known: circle, polygon")


@pytest.mark.parametrize("kind", [["circle"], {"circle": 1}])
def test_a_kind_that_is_a_list_or_a_table(kind):
    check_refused(changed(shape={"kind": kind}), r"shape\.kind")


def registered(cls, kind="blob", frozen=True):
    return Shape.register(kind)(dataclass(frozen=frozen)(cls))


@pytest.mark.parametrize(
    ("kind", "members", "sentence"),
    [
        ("circle", {}, r"a shape of kind 'circle' is registered already \(.*\.Circle\)"),
        ("two words", {}, "a kind is a word of letters"),
        ("nan", {}, "a kind is a word of letters"),  # a number, where --set says it
        (3, {}, r"write @idrl.shape\(\"name\"\) above the class"),
        ("blob", {"area": Shape.area}, r"Blob lacks area; see idrl\.Shape"),
        ("blob", {"__annotations__": {"kind": str}, "kind": "x"}, "leave it out"),
        ("blob", {"__annotations__": {"edge": object}, "edge": None}, "no config can hold"),
        ("blob", {"__annotations__": {"edge": "Edge"}, "edge": None}, "'Edge' is not defined"),
    ],
)
def test_parts_that_are_refused(kind, members, sentence):
    blob = type("Blob", (Shape,), {"area": lambda self: 0.0, "__module__": __name__, **members})
    with pytest.raises(IdrlError, match=sentence):
        registered(blob, kind)
    assert set(Shape.kinds) == {"circle", "polygon"}


def test_classes_that_are_no_parts():
    class Mutable(Circle):
        pass

    for cls, sentence in (
        (Mutable, "Mutable must be a frozen dataclass"),
        (Drawing, r"Drawing must be a class derived from idrl\.Shape"),
        (len, "must be a class derived"),
    ):
        with pytest.raises(IdrlError, match=sentence):
            Shape.register("blob")(cls)
    with pytest.raises(IdrlError, match="Mutable has no name that a config could give"):
        to_dict(Mutable())


def test_a_class_that_is_defined_again_replaces_itself(monkeypatch):
    monkeypatch.setattr(Shape, "kinds", dict(Shape.kinds))
    for number in (1, 2):  # as a notebook's cell that is run twice

        @Shape.register("blob")
        @dataclass(frozen=True)
        class Blob(Circle):
            sides: int = number

    assert build(Drawing, {"title": "one", "shape": {"kind": "blob"}}).shape == Blob(sides=2)


def test_merge_lays_tables_over_tables():
    base = {"a": {"x": 1, "y": 2}, "b": 3}
    change = {"a": {"y": 5}, "c": 4}
    assert merge(base, change) == {"a": {"x": 1, "y": 5}, "b": 3, "c": 4}
    assert base == {"a": {"x": 1, "y": 2}, "b": 3}  # neither is touched
    assert change == {"a": {"y": 5}, "c": 4}


def test_merge_replaces_a_table_whose_kind_changes():
    base = {"shape": {"kind": "circle", "radius": 2.0}}
    polygon = {"shape": {"kind": "polygon", "sides": 5}}
    assert merge(base, polygon) == polygon
    # The same kind said again keeps the rest.
    same = {"shape": {"kind": "circle"}}
    assert merge(base, same) == base


def test_switching_kinds_in_a_real_config():
    def changed(*texts):
        return resolve("c51-ids", "deep_sea/10", changes=assignments(texts))

    assert changed("explore.lam=0.5").explore.lam == 0.5
    assert changed("explore.kind=thompson").explore.kind == "thompson"
    switched = changed("explore.kind=epsilon_greedy", "explore.end=0.2").explore
    assert (switched.kind, switched.end) == ("epsilon_greedy", 0.2)
    assert changed("heads.z.kind=quantile").heads["z"].kind == "quantile"
    assert changed("optimiser.kind=rmsprop").optimiser.kind == "rmsprop"
    with pytest.raises(IdrlError, match="unknown setting 'explore.lam'"):
        changed("explore.kind=thompson", "explore.lam=0.5")
    with pytest.raises(IdrlError, match="did you mean 'thompson'"):
        changed("explore.kind=thomson")


def test_compositions_that_cannot_work_are_refused():
    for texts, sentence in (
        (["heads.q.k=1"], "explore.kind=ids compares the heads .* at least 2"),
        (["heads.q.k=0"], r"heads\.q\.k is 0"),
        (["heads.z.v_min=3"], "v_min must be the smaller"),
        (["learning.gamma=1.5"], "a discount is in"),
        (["seeds=0"], "at least one seed"),
        (["seed=-1"], "seed is -1"),
        (["optimiser.lr=0"], "must be positive"),
        (["explore.rho2=0"], "a variance of noise is positive"),
        (["heads={}"], "must be a table"),  # a word, not a table
    ):
        with pytest.raises(IdrlError, match=sentence):
            resolve("c51-ids", "deep_sea/10", changes=assignments(texts))
    with pytest.raises(IdrlError, match="noise=return needs a head"):
        resolve("dqn-ids", "deep_sea/10", changes=assignments(["explore.noise=return"]))


def test_unknown_names_are_refused():
    with pytest.raises(IdrlError, match="unknown agent 'c51-idz'; did you mean 'c51-ids'"):
        resolve("c51-idz", "deep_sea/10")
    with pytest.raises(IdrlError, match="the config file is for agent 'dqn', not 'c51-ids'"):
        resolve("c51-ids", None, file={"agent": "dqn"})


@pytest.mark.parametrize("env", ["deep_sea/abc", "deep_sea/1.5", "deep_sea/5/6"])
def test_an_environment_whose_size_is_no_number_is_refused(env):
    # The preset reads the size before the environment is made.
    with pytest.raises(IdrlError):
        make_env(resolve("c51-ids", env).env)


@pytest.mark.parametrize(
    "text", ["trunk.hidden=[0]", "trunk.hidden=[64,-3]", "heads.q.hidden=0", "heads.z.hidden=[-1]"]
)
def test_layers_have_at_least_one_unit(text):
    # Else it is flax that refuses, deep in the first compilation.
    with pytest.raises(IdrlError, match="hidden"):
        resolve("c51-ids", "deep_sea/10", changes=assignments([text]))


# -- --set -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("heads.q.k=20", {"heads": {"q": {"k": 20}}}),
        ("seed=3", {"seed": 3}),
        ("explore.lam=0.5", {"explore": {"lam": 0.5}}),
        ("explore.lam=1e-3", {"explore": {"lam": 0.001}}),
        ("a=-2", {"a": -2}),
        (" a.b = 7 ", {"a": {"b": 7}}),
        ("a=true", {"a": True}),
        ("a=False", {"a": False}),
        ("a=word", {"a": "word"}),
        ("a='quoted'", {"a": "quoted"}),
        ('a="20"', {"a": "20"}),
        ("a=[1,2]", {"a": [1, 2]}),
        ("a=[64, 64,]", {"a": [64, 64]}),
        ("a=(1, 2.5)", {"a": [1, 2.5]}),
        ("a=[]", {"a": []}),
        ("a=", {"a": ""}),
        ("env=deep_sea/10?slip=0.05", {"env": "deep_sea/10?slip=0.05"}),  # only the first = counts
    ],
)
def test_parse_assignment(text, expected):
    parsed = parse_assignment(text)
    assert parsed == expected

    def types(value):
        return {k: types(v) for k, v in value.items()} if isinstance(value, dict) else type(value)

    assert types(parsed) == types(expected)  # True == 1, but is something else


def test_dotted_names_are_tables():
    given = {"heads.q.k": 3, "heads": {"q": {"hidden": [8]}}, "explore.kind": "ids", "seed": 1}
    assert nested(given | {"explore.lam": 0.5}) == {
        "heads": {"q": {"k": 3, "hidden": [8]}},
        "explore": {"kind": "ids", "lam": 0.5},
        "seed": 1,
    }


@pytest.mark.parametrize("text", ["", "a", "=1", "a.=1", ".a=1", "a..b=1", "a b"])
def test_assignments_that_are_none(text):
    with pytest.raises(IdrlError, match="not of the form name.of.setting=value"):
        parse_assignment(text)


# -- fuzzing -----------------------------------------------------------------------------------

VALID = to_dict(resolve("c51-ids", "deep_sea/10"))


def paths(data, prefix=()):
    for key, value in data.items():
        yield (*prefix, key)
        if isinstance(value, dict):
            yield from paths(value, (*prefix, key))


PATHS = list(paths(VALID))
NAMES = sorted({key for path in PATHS for key in path})
WORDS = ["ensemble", "categorical", "ids", "thompson", "mlp", "adam", "rmsprop", "huber", "c51-ids"]
# Numbers at and beyond the edges, which hypothesis seldom comes up with by itself.
EDGES = [0, -1, 1, 2**31, 2**53 + 1, 10**308, 10**400, 1e308, 5e-324, -0.0]

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from(WORDS) | st.sampled_from(EDGES) | st.binary(max_size=3)
)  # fmt: skip
keys = st.sampled_from([*NAMES, "kind"]) | st.text(max_size=5) | st.integers() | st.none()
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


def check_built_or_refused(data):
    try:
        config = build(RunConfig, data)
    except IdrlError:
        return
    assert build(RunConfig, to_dict(config)) == config  # what was accepted can be read again


@fuzz
@given(anything)
def test_arbitrary_data_is_built_or_refused(data):
    check_built_or_refused(data)


@fuzz
@given(st.sampled_from(PATHS), anything)
@example(("explore", "kind"), {"kind": "ids"})
@example(("heads", "q"), {"kind": ["ensemble"]})
@example(("seed",), 10**400)
def test_a_valid_config_with_anything_anywhere_is_built_or_refused(path, value):
    # This reaches deeper than data that is wrong from the top.
    data = copy.deepcopy(VALID)
    table = data
    for key in path[:-1]:
        table = table[key]
    table[path[-1]] = value
    check_built_or_refused(data)


def check_set_or_refused(text):
    with contextlib.suppress(IdrlError):
        resolve("c51-ids", "deep_sea/10", changes=assignments([text]))


@fuzz
@given(st.text(max_size=30))
def test_arbitrary_set_texts_are_taken_or_refused(text):
    check_set_or_refused(text)


names = st.lists(st.sampled_from(NAMES) | st.text(max_size=3), min_size=1, max_size=4).map(".".join)
real_names = st.sampled_from([".".join(path) for path in PATHS])
values = (
    st.text(max_size=10)
    | st.text("0123456789.,-+e_[]() '\"", max_size=12)
    | st.sampled_from([*WORDS, "nan", "inf", "-inf", "1e999", "[ids]", "[[1]]", "1" + "0" * 400])
)


@fuzz
@given(names | real_names, values)
@example("explore.kind", "[ids]")
@example("trunk", "[mlp]")
@example("seed", "1" + "0" * 400)
@example("explore.lam", "1" + "0" * 400)
@example("seed", "1" * 5000)  # more digits than Python reads
def test_set_texts_of_the_right_form_are_taken_or_refused(name, value):
    check_set_or_refused(f"{name}={value}")


def test_brackets_within_brackets_are_refused():
    # As deep as an absent-minded loop may write them.
    with pytest.raises(IdrlError):
        resolve("c51-ids", "deep_sea/10", changes=[parse_assignment("trunk.hidden=[[64]]")])
    check_set_or_refused("trunk.hidden=" + "[" * 5000 + "]" * 5000)


def test_a_setting_of_another_name_is_still_read(monkeypatch):
    monkeypatch.setattr(tables, "_said", set())
    old = {"learning": {"target_share": 0.05, "gamma": 0.9}}
    with pytest.warns(UserWarning, match=r"learning.target_share is called learning.tau now"):
        config = resolve("td3", "pendulum", file=old)
    assert (config.learning.tau, config.learning.gamma) == (0.05, 0.9)
    changes = assignments(["learning.target_share=0.01"])
    assert resolve("td3", "pendulum", changes=changes).learning.tau == 0.01
