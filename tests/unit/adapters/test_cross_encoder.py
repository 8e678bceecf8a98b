"""A cross-encoder from a directory: a real ONNX model and a real tokenizer, made on the spot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from concordance.adapters.cross_encoder import MODEL, TOKENIZER, CrossEncoder
from concordance.errors import ModelMissing, ProviderRefused, ProviderTimeout

WORDS = ["[UNK]", "[CLS]", "[SEP]", "how", "is", "firmware", "flashed", "weather", "nice"]


def write_model(
    directory: Path,
    *,
    classes: int = 1,
    whole: int = TensorProto.INT64,
    names: tuple[str, str] = ("input_ids", "attention_mask"),
    length: int | None = None,
) -> None:
    """Scores a pair by the sum of its token numbers, for one class or as (0, sum) for two."""
    ids = helper.make_tensor_value_info(names[0], whole, [1, length])
    mask = helper.make_tensor_value_info(names[1], whole, [1, length])
    out = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, classes])
    nodes = [
        helper.make_node("Mul", list(names), ["kept"]),
        helper.make_node("Cast", ["kept"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["numbers", "axes"], ["sum"], keepdims=1),
    ]
    if classes == 1:
        nodes.append(helper.make_node("Identity", ["sum"], ["logits"]))
    else:
        sums = ["zero"] + ["sum"] * (classes - 1)
        nodes.append(helper.make_node("Concat", sums, ["logits"], axis=1))
    initial = [
        helper.make_tensor("axes", TensorProto.INT64, [1], [1]),
        helper.make_tensor("zero", TensorProto.FLOAT, [1, 1], [0.0]),
    ]
    graph = helper.make_graph(nodes, "sum", [ids, mask], [out], initial)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.checker.check_model(model)
    onnx.save(model, str(directory / MODEL))


def write_tokenizer(directory: Path) -> None:
    tokenizer = Tokenizer(models.WordLevel({w: n for n, w in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    tokenizer.save(str(directory / TOKENIZER))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write_model(tmp_path)
    write_tokenizer(tmp_path)
    return tmp_path


def test_question_and_passage_are_read_together(directory: Path) -> None:
    encoder = CrossEncoder(directory)
    scores = encoder.scores("how", ["firmware flashed", "weather"], deadline_seconds=10)
    assert scores == [1 + 3 + 2 + 5 + 6 + 2, 1 + 3 + 2 + 7 + 2]


def test_two_classes_give_their_difference(directory: Path) -> None:
    write_model(directory, classes=2)
    assert CrossEncoder(directory).scores("how", ["is"], deadline_seconds=10) == [12.0]


def test_a_long_passage_is_cut_and_the_question_kept(directory: Path) -> None:
    (score,) = CrossEncoder(directory).scores("flashed", ["how " * 2_000], deadline_seconds=10)
    assert score == 1 + 6 + 2 + 3 * (512 - 4) + 2


@pytest.mark.parametrize("words", [509, 510, 600, 5_000])
def test_a_long_question_is_cut_and_the_passage_kept(directory: Path, words: int) -> None:
    question = "how " * words
    (score,) = CrossEncoder(directory).scores(question, ["flashed"], deadline_seconds=10)
    assert score == 1 + 3 * (512 - 4) + 2 + 6 + 2


def test_of_a_long_question_and_a_long_passage_half_of_each_is_read(directory: Path) -> None:
    (score,) = CrossEncoder(directory).scores("how " * 900, ["is " * 900], deadline_seconds=10)
    assert score in {1 + 3 * half + 2 + 4 * (509 - half) + 2 for half in (254, 255)}


def test_ids_of_four_bytes_are_fed_as_such(directory: Path) -> None:
    write_model(directory, whole=TensorProto.INT32)
    assert CrossEncoder(directory).scores("how", ["is"], deadline_seconds=10) == [12.0]


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ({"whole": TensorProto.FLOAT}, "'attention_mask' is a tensor\\(float\\)|'input_ids' is"),
        ({"names": ("input_ids", "pixel_values")}, "asks for 'pixel_values'"),
        ({"names": ("token_type_ids", "attention_mask")}, "does not ask for 'input_ids'"),
        ({"length": 3}, "can't be run"),
        ({"classes": 3}, "gives 3 numbers for a pair"),
    ],
)
def test_a_model_of_another_kind_is_refused(
    directory: Path, model: dict[str, Any], why: str
) -> None:
    write_model(directory, **model)
    with pytest.raises(ProviderRefused, match=why):
        CrossEncoder(directory).scores("how", ["is"], deadline_seconds=10)


def test_a_tokenizer_of_an_unknown_kind_is_refused(directory: Path) -> None:
    (directory / TOKENIZER).write_text('{"model": {"type": "Nope"}}')
    with pytest.raises(ProviderRefused, match="can't be used"):
        CrossEncoder(directory).scores("how", ["is"], deadline_seconds=10)


def test_a_tokenizer_that_knows_not_every_word_and_has_no_sign_for_it_is_refused(
    directory: Path,
) -> None:
    Tokenizer(models.WordLevel({"how": 0}, unk_token="[UNK]")).save(str(directory / TOKENIZER))
    with pytest.raises(ProviderRefused, match="can't cut a text"):
        CrossEncoder(directory).scores("how", ["is"], deadline_seconds=10)


def test_no_passages_are_no_work(directory: Path) -> None:
    assert CrossEncoder(directory).scores("how", [], deadline_seconds=10) == []


def test_a_deadline_that_has_passed_is_kept(directory: Path) -> None:
    with pytest.raises(ProviderTimeout, match="was not done within"):
        CrossEncoder(directory).scores("how", ["is"], deadline_seconds=-1)


@pytest.mark.parametrize("name", [MODEL, TOKENIZER])
def test_a_missing_file_is_named(directory: Path, name: str) -> None:
    (directory / name).unlink()
    with pytest.raises(ModelMissing, match=f"no {name}"):
        CrossEncoder(directory).scores("how", ["is"], deadline_seconds=10)


@pytest.mark.parametrize("name", [MODEL, TOKENIZER])
@pytest.mark.parametrize("content", [b"", b"{}", b"not a model \xff"])
def test_a_file_that_is_something_else_is_refused(
    directory: Path, name: str, content: bytes
) -> None:
    (directory / name).write_bytes(content)
    with pytest.raises(ProviderRefused, match="can't be used"):
        CrossEncoder(directory).scores("how", ["is"], deadline_seconds=10)
