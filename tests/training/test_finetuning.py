"""Masked fine-tuning of a tiny encoder: strategies, schedule, selection, determinism and resume."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, TrainerCallback

import faithmeter as fm
from faithmeter.runs.measured import task_of
from faithmeter.training import finetuning
from faithmeter.training.trainer import training_arguments
from trainings import Interrupt, equal, run, weights


class Rates(TrainerCallback):
    """The learning rate of every optimizer step."""

    def __init__(self) -> None:
        self.seen: list[float] = []

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, optimizer: Any, **_: Any) -> None:
        self.seen.append(optimizer.param_groups[0]["lr"])


@pytest.fixture(scope="module")
def whole(config: fm.TrainConfig, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """Result and folder of a training."""
    folder = tmp_path_factory.mktemp("whole")
    return run(config, folder), folder


def test_the_record_tells_the_story_of_a_run(whole) -> None:
    result, _ = whole
    assert [epoch["epoch"] for epoch in result["epochs"]] == [1, 2, 3]
    assert all(epoch["train_loss"] > 0 for epoch in result["epochs"])
    for epoch in result["epochs"]:
        best = epoch["epoch"] == result["best_epoch"]
        expected = [*range(0, 101, 10), "uniform", "all"] if best else [0, "uniform"]
        assert [row["masking"] for row in epoch["validation"]] == expected
        assert set(epoch["validation"][0]) == {"masking", "accuracy", "macro_f1", "loss"}
    best = max(epoch["selection"] for epoch in result["epochs"])
    assert result["epochs"][result["best_epoch"] - 1]["selection"] == best
    assert result["source"]["kind"] == "own"
    assert set(result["splits"]) == {"train", "validation", "test"}
    assert result["rows"] == {"train": 48, "validation": 6, "test": 6}
    assert set(result["seconds"]) == {"load", "tokenize", "train", "sweep", "test", "save"}
    assert result["columns"] == ["text"]
    assert result["truncated"] == {"train": 0.0, "validation": 0.0, "test": 0.0}


def test_the_checkpoint_loads_with_plain_transformers_and_scores_as_recorded(config, whole) -> None:
    result, folder = whole
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    test = task_of(config).load()["test"]
    inputs = tokenizer(test["text"][:], padding=True, return_tensors="pt")
    with torch.inference_mode():
        guesses = model.eval()(**inputs).logits.argmax(dim=1).tolist()
    accuracy = sum(g == label for g, label in zip(guesses, test["label"], strict=True)) / len(guesses)
    assert result["test"][0] == {"masking": 0, **result["test"][0]}
    assert result["test"][0]["accuracy"] == pytest.approx(accuracy)
    assert model.config.id2label == {0: "neg", 1: "pos"}


def test_the_same_seed_gives_bit_identical_checkpoints_and_another_seed_others(
    config, whole, tmp_path
) -> None:
    one, folder = whole
    two = run(config, tmp_path / "again")
    assert equal(weights(folder), weights(tmp_path / "again"))
    assert one["epochs"] == two["epochs"]
    assert one["test"] == two["test"]
    run(config.replace(seed=1), tmp_path / "other")
    assert not equal(weights(folder), weights(tmp_path / "other"))


def test_a_sample_is_swept_unless_all_texts_are_asked_for(config, whole, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(finetuning, "SAMPLE", 2)
    sampled, folder = run(config, tmp_path / "sampled"), whole[1]
    assert equal(weights(tmp_path / "sampled"), weights(folder))
    assert sampled["test"][0] == whole[0]["test"][0]
    best = sampled["epochs"][sampled["best_epoch"] - 1]["validation"]
    assert [row.get("texts") for row in sampled["test"]] == [None, *[2] * 12]
    assert [row.get("texts") for row in best] == [
        None,
        *[2] * 10,
        None,
        2,
    ]  # whole and uniform chose the epoch
    everything = run(config.replace(sweep="all"), tmp_path / "all")
    assert everything["test"] == whole[0]["test"]
    assert all("texts" not in row for row in everything["test"])


@pytest.mark.parametrize("validation", ["both", "masked"])
def test_a_sweep_after_every_epoch_changes_no_result(config: fm.TrainConfig, tmp_path, validation) -> None:
    config = config.replace(validation=validation, epochs=2)
    once = run(config, tmp_path / "once")
    always = run(config.replace(sweep="every-epoch"), tmp_path / "always")
    assert equal(weights(tmp_path / "once"), weights(tmp_path / "always"))
    assert once["best_epoch"] == always["best_epoch"]
    for epoch, swept in zip(once["epochs"], always["epochs"], strict=True):
        assert len(swept["validation"]) == 13
        assert epoch["selection"] == swept["selection"]
        tables = ({row["masking"]: row for row in each["validation"]} for each in (epoch, swept))
        evaluated, everything = tables
        assert len(evaluated) == (13 if epoch["epoch"] == once["best_epoch"] else 1 + (validation == "both"))
        for masking, row in evaluated.items():
            assert {k: v for k, v in row.items() if k != "masking"} == pytest.approx(
                {k: v for k, v in everything[masking].items() if k != "masking"}, abs=1e-6
            )
    assert once["test"] == always["test"]
    assert "sweep" not in always["seconds"]


def test_all_nine_strategies_differ_where_they_must(config: fm.TrainConfig, tmp_path) -> None:
    """Training strategies give other weights; validation strategies see the same weights with other eyes."""
    short = config.replace(epochs=1)
    results, trained = {}, {}
    for cell in itertools.product(("half", "all", "none"), ("both", "masked", "unmasked")):
        folder = tmp_path / "-".join(cell)
        results[cell] = run(short.replace(strategy=cell[0], validation=cell[1]), folder)
        trained[cell] = weights(folder)
    for strategy in ("half", "all", "none"):
        cells = [(strategy, validation) for validation in ("both", "masked", "unmasked")]
        assert all(equal(trained[cells[0]], trained[cell]) for cell in cells), "one epoch: nothing to select"
        validation = {row["masking"]: row["accuracy"] for row in results[cells[0]]["epochs"][0]["validation"]}
        chosen = [results[cell]["epochs"][0]["selection"] for cell in cells]
        both = (validation[0] + validation["uniform"]) / 2  # accuracy over the 2 N rows
        assert chosen == pytest.approx([both, validation["uniform"], validation[0]])
    for one, other in itertools.combinations(("half", "all", "none"), 2):
        assert not equal(trained[one, "both"], trained[other, "both"])
    # the released code masked nothing here; ours does
    losses = {row["masking"]: row["loss"] for row in results["none", "masked"]["epochs"][0]["validation"]}
    assert losses["uniform"] != losses[0]


def test_an_interrupted_run_ends_like_an_uninterrupted_one(config: fm.TrainConfig, whole, tmp_path) -> None:
    result, whole_folder = whole
    for step in (3, 8, 12):  # before the first checkpoint, in the middle of an epoch, at the end of one
        folder = tmp_path / str(step)
        with pytest.raises(KeyboardInterrupt):
            run(config, folder, callbacks=[Interrupt(step)])
        resumed = run(config, folder, resume=True)
        assert resumed["epochs"] == result["epochs"]
        assert resumed["test"] == result["test"]
        assert resumed["best_epoch"] == result["best_epoch"]
        assert equal(weights(folder), weights(whole_folder))


def test_the_rate_rises_for_6_percent_of_the_optimizer_steps_then_falls_to_zero(config, tmp_path) -> None:
    rates = Rates()
    run(config.replace(warmup=0.2), tmp_path, callbacks=[rates])
    steps, warm = 18, 4  # 3 epochs of 6 steps; 0.2 of them, rounded up
    expected = [t / warm if t < warm else (steps - t) / (steps - warm) for t in range(steps)]
    assert rates.seen == pytest.approx([3e-3 * share for share in expected])


def test_the_released_schedule_counts_examples_and_only_rises(config: fm.TrainConfig, tmp_path) -> None:
    rates = Rates()
    run(config.replace(warmup=0.5, released_schedule=True), tmp_path, callbacks=[rates])
    warm = 3 * 48 // 2  # as if every example were a step
    assert rates.seen == pytest.approx([3e-3 * t / warm for t in range(18)])


def test_the_optimizer_is_that_of_the_released_code_or_of_the_options(
    config: fm.TrainConfig, tmp_path
) -> None:
    class Groups(TrainerCallback):
        def on_train_begin(self, args, state, control, *, optimizer, **_) -> None:
            self.seen = {(g["betas"], g["eps"], g["weight_decay"]) for g in optimizer.param_groups}

    groups, once = Groups(), config.replace(epochs=1)
    run(once, tmp_path / "released", callbacks=[groups])
    assert groups.seen == {((0.9, 0.999), 1e-8, 0.01), ((0.9, 0.999), 1e-8, 0.0)}
    liu = {"adam_beta2": 0.98, "adam_epsilon": 1e-6, "weight_decay": 0.1}
    run(once.replace(**liu), tmp_path / "liu", callbacks=[groups])
    assert groups.seen == {((0.9, 0.98), 1e-6, 0.1), ((0.9, 0.98), 1e-6, 0.0)}


def test_of_equally_good_epochs_the_earliest_is_kept(config: fm.TrainConfig, tmp_path) -> None:
    result = run(config.replace(learning_rate=0.0), tmp_path)
    assert len({epoch["selection"] for epoch in result["epochs"]}) == 1
    assert result["best_epoch"] == 1


def test_a_limit_takes_the_first_rows_of_each_split(config: fm.TrainConfig, tmp_path) -> None:
    assert run(config.replace(limit=4, epochs=1), tmp_path)["rows"] == dict.fromkeys(
        ("train", "validation", "test"), 4
    )


def test_a_model_that_is_not_there_is_named(config: fm.TrainConfig, tmp_path) -> None:
    with pytest.raises(fm.InputError, match="nowhere"):
        run(config.replace(model=str(tmp_path / "nowhere")), tmp_path)


def test_a_finished_run_is_not_taken_for_one_on_changed_data(config: fm.TrainConfig, tmp_path) -> None:
    data = tmp_path / "reviews.csv"
    data.write_text(Path(config.data).read_text())
    own, store = config.replace(data=str(data), epochs=1), fm.RunStore(tmp_path / "runs")
    record = fm.train(own, store)
    assert fm.train(own, store) == record
    data.write_text(data.read_text() + "\nthe plot was good,neg")
    with pytest.raises(fm.InputError, match=r"changed: rows \(.*train.*\); add --restart"):
        fm.train(own, store)
    assert fm.train(own, store, restart=True).rows["train"] == 49


def test_an_unknown_place_to_report_to_is_refused(config: fm.TrainConfig, tmp_path) -> None:
    with pytest.raises(fm.InputError, match="report_to is 'wandbb'"):
        run(config.replace(report_to="wandbb"), tmp_path)


def test_the_logs_of_tensorboard_stay_beside_the_checkpoint(config: fm.TrainConfig, tmp_path) -> None:
    store, logged = fm.RunStore(tmp_path), config.replace(epochs=1, report_to="tensorboard")
    fm.train(logged, store)
    assert list(store.folder(logged).glob("logs/**/events.*"))
    assert not (store.folder(logged) / "trainer").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("gpus", [0, 1, 4])
def test_a_process_trains_on_one_gpu_however_many_it_sees(config, tmp_path, monkeypatch, gpus: int) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    arguments = training_arguments(config, task_of(config), tmp_path)
    assert arguments.n_gpu == min(1, gpus)
    assert arguments.train_batch_size == config.batch_size
