"""The fit of the matmul surfaces: that it finds known ones, leaves out what is no kernel, and made the file we ship."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from estimator.machine.matmul import KINDS, OPERAND_BYTES, MatmulRates, MatmulSurface, matmul_seconds
from knowledge.fitted.training import surfaces
from knowledge.machines.catalogue import accelerators
from measure.fit.matmul import FILE, document, fit, fitted, has, library, surface_name
from measure.fit.matmul_timings import MatmulTimings, best_rates, ceilings, families, peak_of, timed, timings, usable

PEAK, BANDWIDTH = 1e15, 3e12
KNOWN = MatmulSurface(height=0.66, memory=0.87, wave_outputs=6e5, half_k=100.0, unhidden=0.12, launch_s=4.2e-6)


@cache
def found() -> dict[str, dict[str, dict[str, Any]]]:
    return fit()


def made(source: str = "vidur", software: str = "torch", scatter: float = 0.0, seed: int = 0) -> MatmulTimings:
    """Timings that the known surface would give, each off by a random factor."""
    grid = np.array(
        [(m, n, k) for m in (1, 16, 128, 512, 2048, 8192) for n in (512, 2048, 8192) for k in (512, 4096, 16384)], float
    )
    m, n, k = grid.T
    exact = matmul_seconds(MatmulRates(KNOWN, PEAK, BANDWIDTH), m, n, k)
    noise = np.exp(scatter * np.random.default_rng(seed).standard_normal(len(m)))
    return MatmulTimings(
        accelerator=np.full(len(m), "some"),
        software=np.full(len(m), software),
        source=np.full(len(m), source),
        m=m,
        n=n,
        k=k,
        seconds=exact * noise,
        peak=np.full(len(m), PEAK),
        bandwidth=np.full(len(m), BANDWIDTH),
    )


def changed(points: MatmulTimings, **values: np.ndarray) -> MatmulTimings:
    return MatmulTimings(**(vars(points) | values))


@pytest.mark.parametrize("scatter", [0.0, 0.08])
def test_a_known_surface_is_found_again(scatter: float):
    values = fitted(made(scatter=scatter), "bf16")
    assert values["height"] == pytest.approx(KNOWN.height, rel=0.05)
    assert values["memory"] == pytest.approx(KNOWN.memory, rel=0.06)
    assert values["launch_s"] == pytest.approx(KNOWN.launch_s, rel=0.25)
    assert values["wave_outputs"] == pytest.approx(KNOWN.wave_outputs, rel=0.6)


def test_a_few_timings_that_waited_do_not_move_the_surface():
    points = made()
    late = points.seconds.copy()
    late[::11] *= 1.8
    assert fitted(changed(points, seconds=late), "bf16")["height"] == pytest.approx(KNOWN.height, rel=0.05)


def test_a_cast_in_the_timings_is_told_from_the_kernel():
    points = made(source="aic", software="engine")
    exact = matmul_seconds(MatmulRates(KNOWN, PEAK, BANDWIDTH, (1.0, 1.0)), points.m, points.n, points.k)
    cast = 6e-6 + 4.0 * points.m * points.k / (BANDWIDTH * 0.87)
    kin = vars(KNOWN) | {"height": 0.75}
    values = fitted(changed(points, seconds=exact + cast), "fp8", kin)
    assert values["height"] == pytest.approx(KNOWN.height, rel=0.05)
    assert values["engine_s engine"] == pytest.approx(6e-6, rel=0.2)


def test_what_no_lasting_kernel_on_the_device_shows_is_left_out():
    quick, slow = made(software="quick"), made(software="slow")
    seconds = np.concatenate([quick.seconds, 3.0 * slow.seconds])
    cached = (quick.m == 1) & (quick.n == 8192) & (quick.k == 4096)
    seconds[: len(quick)][cached] = 0.5 * 2.0 * 8192 * 4096 / BANDWIDTH
    both = MatmulTimings(
        **{name: np.concatenate([vars(quick)[name], vars(slow)[name]]) for name in vars(quick) if name != "seconds"},
        seconds=seconds,
    )
    kept = usable(both, "bf16", kin_ceiling=0.6)
    assert set(kept.software) == {"quick"}
    assert len(kept) == len(quick) - 1
    assert (kept.flop / kept.seconds <= 0.6 * PEAK * (1.0 + 1e-9)).all()


def test_a_bound_of_the_device_itself_comes_before_that_of_its_kin():
    points = made()
    best = made(source="mamf").take(np.arange(len(points)) == len(points) - 1)
    best = changed(best, seconds=best.flop / (0.5 * PEAK))
    both = MatmulTimings(**{name: np.concatenate([vars(points)[name], vars(best)[name]]) for name in vars(points)})
    kept = usable(both, "bf16", kin_ceiling=0.9)
    assert len(kept) == len(points)
    assert (kept.flop / kept.seconds).max() == pytest.approx(0.5 * PEAK)


def test_the_file_is_what_the_fit_gives():
    shipped = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    now = document(found())
    assert shipped["accelerators"] == now["accelerators"]
    assert {family: list(kinds) for family, kinds in shipped["surfaces"].items()} == {
        family: list(kinds) for family, kinds in now["surfaces"].items()
    }
    assert shipped["library"].keys() == now["library"].keys()
    for part in ("surfaces", "library"):
        for family, kinds in now[part].items():
            for kind, row in kinds.items():
                # Other builds of LAPACK round the last steps differently.
                for name in vars(KNOWN):
                    assert shipped[part][family][kind][name] == pytest.approx(row[name], rel=0.05), (family, kind)


def test_surfaces_stay_near_their_timings():
    """The kernels of different software differ by 4 to 15 % on one shape, so no surface can do much better."""
    for family, kinds in found().items():
        for kind, row in kinds.items():
            if row["points"]:
                limit = 9.0 if kind == "bf16" else 15.0
                assert max(row["errors"].values()) < limit, (family, kind, row["errors"])


def test_heights_stay_below_the_best_that_was_ever_found():
    for kind in KINDS:
        for family, best in ceilings(kind).items():
            assert found()[family][kind]["numbers"]["height"] <= best + 5e-4, (family, kind)
        for device, best in best_rates(timings(kind)).items():
            if device not in timed():
                assert found()[surface_name(device, found())][kind]["numbers"]["height"] <= best + 5e-4, (device, kind)


def test_the_newest_software_sets_the_best_rate():
    points = made(source="mamf").take(np.arange(2))
    rate = points.flop / points.seconds / PEAK
    assert best_rates(points) == {"some": pytest.approx(rate.max())}


def test_bounds_of_a_family_are_those_of_the_devices_that_were_timed():
    """An H100 on PCIe has half the power and an H20 a fifth of the rate: they say nothing about the timed H100 SXM."""
    rates = best_rates(timings("bf16"))
    assert ceilings("bf16")["Hopper"] == rates["h100-sxm"]
    assert rates["h100-pcie"] < 0.9 * rates["h100-sxm"] < rates["h20"]


def test_devices_that_were_searched_but_not_timed_have_their_own_height():
    kinds = {name: found()[name]["bf16"]["numbers"] for name in ("Hopper", "h100-pcie", "mi300x", "mi325x")}
    assert kinds["h100-pcie"]["height"] < 0.9 * kinds["Hopper"]["height"]
    assert kinds["h100-pcie"] == kinds["Hopper"] | {"height": kinds["h100-pcie"]["height"]}
    assert kinds["mi325x"]["height"] > 1.1 * kinds["mi300x"]["height"]
    assert surface_name("mi300a", found()) == "CDNA3"


def test_less_power_for_the_same_cores_sustains_less() -> None:
    """MI350X and MI355X train Llama-3.1-8B in fp8 at 25,509 and 31,424 tokens/s a device (MLPerf Training v5.1)."""
    by_id = {one.id: one for one in accelerators()}

    def sustained(name: str) -> float:
        return found()[surface_name(name, found())]["bf16"]["numbers"]["height"] * peak_of(by_id[name], "bf16")

    assert sustained("mi350x") / sustained("mi355x") == pytest.approx(25_509 / 31_424, rel=0.05)
    assert sustained("h100-pcie") < sustained("h100-nvl") < 0.8 * sustained("h100-sxm")
    # 600 of 700 W, and a peak that is printed for a lower clock.
    assert surface_name("h200-nvl", found()) == "Hopper"


@pytest.mark.parametrize(("size", "measured_tflops"), [(1024, 349.7), (2048, 679.3), (4096, 892.9)])
def test_a_borrowed_surface_foretells_smaller_products(size: int, measured_tflops: float):
    """One chiplet of TPU7x (AI-Hypercomputer/tpu-recipes, ironwood): only the largest size sets the height."""
    surface = MatmulSurface(**found()["tpu-v7"]["bf16"]["numbers"])
    chip = next(one for one in accelerators() if one.id == "tpu-v7")
    m = np.array([2.0 * size])
    seconds = matmul_seconds(MatmulRates(surface, peak_of(chip, "bf16"), chip.memory_bandwidth), m, size, size)[0]
    assert 2.0 * size**3 / seconds == pytest.approx(1e12 * measured_tflops, rel=0.1)


def test_the_librarys_four_bits_foretell_what_it_reaches_with_less_power():
    """cuBLASLt 13.3 on B200 at 8192 x 8192 x 8192 (deepseek-ai/DeepGEMM, pull 348): 5.2 PFLOP/s, where engines' kernels
    reach 4.2. Its surface is that of GB200 by the power limit."""
    row = library(found())["b200-sxm"]["nvfp4"]
    assert row["points"] == 0
    chip = next(one for one in accelerators() if one.id == "b200-sxm")
    rates = MatmulRates(
        MatmulSurface(**row["numbers"]), peak_of(chip, "nvfp4"), chip.memory_bandwidth, OPERAND_BYTES["nvfp4"]
    )
    seconds = matmul_seconds(rates, np.array([8192.0]), 8192.0, 8192.0)[0]
    assert 2.0 * 8192**3 / seconds == pytest.approx(5.2e15, rel=0.1)


def test_training_calls_the_library_and_engines_their_own():
    own, called = (surfaces("gb300", trains=trains)["nvfp4"].height for trains in (False, True))
    assert own < 0.8 * called
    assert surfaces("h100-sxm") == surfaces("h100-sxm", trains=True)


def test_every_device_has_a_surface_for_each_kind_that_it_can_run():
    for one in accelerators():
        kinds = found()[surface_name(one.id, found())]
        assert {kind for kind in KINDS if peak_of(one, kind) > 0.0} <= set(kinds), one.id


def test_surfaces_without_timings_say_so():
    for family, kinds in found().items():
        for kind, row in kinds.items():
            assert bool(row["points"]) == ("source" in row) == ("borrowed" not in row), (family, kind)
    assert "borrowed" in found()["CDNA3"]["bf16"]
    assert found()["Hopper"]["bf16"]["points"] > 500


@pytest.mark.parametrize("family", ["Ampere", "Hopper"])
def test_layers_are_foretold_by_kernels_timed_alone(family: str):
    """Linear layers within models (torch), by a surface that never saw them: nothing general separates the two."""
    everything = timings("bf16")
    mine = np.array([families()[name] == family for name in everything.accelerator])
    best = ceilings("bf16")[family]
    points = usable(everything.take(mine), "bf16", best)
    values = fitted(points.take(points.source != "vidur"), "bf16", ceiling=best)
    layers = points.take((points.source == "vidur") & (points.m > 512))
    surface = MatmulSurface(**{name: values[name] for name in vars(KNOWN)})
    estimated = matmul_seconds(MatmulRates(surface, layers.peak, layers.bandwidth), layers.m, layers.n, layers.k)
    assert len(layers) > 50
    assert abs(np.median(np.log(estimated / layers.seconds))) < 0.09


def test_hardware_of_ones_own_is_no_matter_to_what_is_fitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = families()
    monkeypatch.setenv("SHARDWISE_CONFIG", str(tmp_path))
    (tmp_path / "hardware").mkdir()
    (tmp_path / "hardware" / "mine.yaml").write_text("like: h100-sxm\nid: mine\n")
    assert "mine" in {device.id for device in accelerators()}
    families.cache_clear()
    assert families() == before
    assert all(has("Hopper", kind) == (kind in found()["Hopper"]) for kind in KINDS)
