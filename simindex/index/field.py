"""A similarity field's settings: validated once, stored for ever, compared before use."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from simindex import features, lsh, sketch
from simindex.errors import FeatureError, SchemaError, shown
from simindex.index.spelling import unknown
from simindex.types import F64

Kind = Literal["text", "tokens"]
KINDS: tuple[Kind, ...] = ("text", "tokens")
VERIFY = ("exact", "estimate")
FAMILIES = ("fastsim/1", "minhash/1")
NARROW_ROWS = 3  # bands of so few rows or fewer take 16-bit slots by default
MIN_CANDIDATE_RECALL = 0.8
CERTAIN = 1e-9  # the chance of losing a pair to the signature filter where nothing may be missed

_ANY = (
    "threshold",
    "k",
    "slots",
    "bands",
    "recall",
    "verify",
    "family",
    "seed",
    "scheme",
    "keep",
    "source",
    "force",
)
SETTINGS: dict[Kind, tuple[str, ...]] = {"text": (*_ANY, "shingle", "normalize", "casefold"), "tokens": _ANY}


@dataclass(frozen=True)
class Field:
    """One similarity field. Made by `text()`, `tokens()` or `from_dict`; never changed.

    threshold: the similarity that the bands are tuned for. recall: the asked recall at the threshold, None
    when the bands were given. bands, rows: b bands of r slots. sigmas: how many standard errors below the
    threshold the signature filter lies. family, params: which signatures (sketch.family). text: how a text
    becomes shingles (features.TextSettings), None for tokens. keep: the value itself is stored too. source:
    the column that feeds the field, None for its own name.
    """

    kind: Kind
    threshold: float
    recall: float | None
    bands: int
    rows: int
    sigmas: float
    verify: str
    family_name: str
    params: dict[str, Any]
    text: features.TextSettings | None = None
    keep: bool = False
    source: str | None = None
    forced: bool = False

    measure = "jaccard"

    @cached_property
    def family(self) -> Any:
        return sketch.family(self.family_name, self.params)

    @cached_property
    def scheme(self) -> Any:
        """The banding scheme of this field's signatures."""
        return lsh.Bands(self.bands, self.rows, self.family)

    @cached_property
    def text_arguments(self) -> tuple[int, int, int, bool]:
        """The text settings as the kernels take them."""
        assert self.text is not None
        return self.text.arguments()

    @property
    def is_exact(self) -> bool:
        """Whether true Jaccard decides (verify="exact")."""
        return self.verify == "exact"

    @cached_property
    def min_equal(self) -> int:
        """Candidates with fewer equal slots are discarded at the field's threshold (`sigmas` standard errors
        below it).
        """
        return int(self.family.min_equal(self.threshold, self.sigmas))

    def bucket_probability(self, s: float) -> float:
        """Return the chance that items of similarity s share at least one bucket."""
        return float(self.scheme.candidate_probability(s))

    def candidate_recall(self, s: float, threshold: float | None = None) -> float:
        """Return the chance that a pair of similarity s is a candidate: shares a bucket and passes the
        signature filter.
        """
        least = self.least_for(self.threshold if threshold is None else threshold, False)
        return self.bucket_probability(s) * float(self.family.pass_probability(s, least))

    def expected_recall(self, s: float, threshold: float | None = None, accept: str = "likely") -> float:
        """Return the chance that a pair of similarity s >= threshold is a hit of a bucket search at that
        threshold.

        With verify="exact" every candidate of similarity s is a hit; with "estimate" the estimate must reach
        the threshold too (accept="likely"), or the upper end of its interval must ("possible").
        """
        at = self.threshold if threshold is None else threshold
        if self.is_exact:
            return self.candidate_recall(s, at)
        return self.bucket_probability(s) * float(
            self.family.pass_probability(s, self.least_equal(at, accept))
        )

    @cached_property
    def _least(self) -> dict[tuple[float, object], int]:
        return {}

    def least_equal(self, threshold: float, accept: str = "likely") -> int:
        """Return the fewest equal slots whose estimate reaches the threshold ("likely"), or whose interval's
        upper end does ("possible"); k + 1 where none does.
        """
        known = self._least.get((threshold, accept))
        if known is None:
            reach = self.estimates if accept == "likely" else self.intervals[1]
            passing = np.nonzero(reach >= threshold - 1e-12)[0]
            known = int(passing[0]) if len(passing) else int(self.family.k) + 1
            self._remember((threshold, accept), known)
        return known

    def least_for(self, threshold: float, complete: bool) -> int:
        """Return the fewest equal slots of a pair whose true similarity may reach the threshold.

        complete: a pair at the threshold is lost with a chance below 1e-9; else by `sigmas` standard errors
        (3: 1e-3).
        """
        if threshold <= 0.0:
            return 0
        known = self._least.get((threshold, complete))
        if known is None:
            known = int(self.family.min_equal(threshold, self.sigmas))
            if complete:
                known = self._least_certain(threshold, known)
            self._remember((threshold, complete), known)
        return known

    def _least_certain(self, threshold: float, high: int) -> int:
        low = 0
        while low < high:  # the most slots that a pair at the threshold has, but for one in 1e9
            middle = (low + high + 1) // 2
            if 1.0 - float(self.family.pass_probability(threshold, middle)) <= CERTAIN:
                low = middle
            else:
                high = middle - 1
        return low

    def _remember(self, key: tuple[float, object], least: int) -> None:
        if len(self._least) >= 4096:
            self._least.clear()
        self._least[key] = least

    @cached_property
    def estimates(self) -> F64:
        """The estimated similarity for every number of equal slots, float64 (k + 1,)."""
        return np.asarray(self.family.estimate(np.arange(self.family.k + 1, dtype=np.uint16)), np.float64)

    @cached_property
    def intervals(self) -> tuple[F64, F64]:
        """The 95 % interval for every number of equal slots, two float64 (k + 1,)."""
        low, high = self.family.interval(np.arange(self.family.k + 1, dtype=np.uint16))
        return np.asarray(low, np.float64), np.asarray(high, np.float64)

    def recall_table(self) -> list[tuple[float, float]]:
        """Return [(similarity, expected recall)] at T - 0.05, T, T + 0.05 and T + 0.1, inside 0..1."""
        points = [round(self.threshold + d, 10) for d in (-0.05, 0.0, 0.05, 0.1)]
        return [(s, self.expected_recall(s, min(s, self.threshold))) for s in points if 0.0 < s <= 1.0]

    def describe(self, name: str = "") -> str:
        """Return the field's description: settings, and the expected recall at and near the threshold."""
        parts = [
            f"{name or 'field'}: {self.kind}, {self.measure} >= {self.threshold:g}",
            f"{self.family_name} k={self.family.k}, {self.family.slot_bits}-bit slots",
            f"{self.bands} bands of {self.rows} rows"
            + (f" ({self.scheme.unused} slots unused)" if self.scheme.unused else ""),
            f"verify={self.verify}",
        ]
        if self.text is not None:
            parts.insert(1, ", ".join(f"{k}={v}" for k, v in self.text.to_dict().items()))
        table = ", ".join(f"{r:.4f} at {s:g}" for s, r in self.recall_table())
        return "; ".join(parts) + f"\n  expected recall: {table}" + ("; forced" if self.forced else "")

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data, as they are stored."""
        return {
            "kind": self.kind,
            "threshold": self.threshold,
            "recall": self.recall,
            "bands": [self.bands, self.rows],
            "sigmas": self.sigmas,
            "verify": self.verify,
            "family": self.family_name,
            "params": dict(self.params),
            "text": None if self.text is None else self.text.to_dict(),
            "keep": self.keep,
            "source": self.source,
            "forced": self.forced,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Field":
        """Return the field that to_dict described. Raises SchemaError for a kind that this version does not
        know.
        """
        kind = _one_of("field kind", data["kind"], KINDS)
        text = data["text"]
        return cls(
            kind=kind,
            threshold=data["threshold"],
            recall=data["recall"],
            bands=data["bands"][0],
            rows=data["bands"][1],
            sigmas=data["sigmas"],
            verify=data["verify"],
            family_name=data["family"],
            params=data["params"],
            text=None if text is None else features.TextSettings.from_dict(text),
            keep=data["keep"],
            source=data["source"],
            forced=data["forced"],
        )


def text(
    *,
    threshold: float = 0.8,
    shingle: str = "words:3",
    normalize: str = "nfc",
    casefold: bool = True,
    **settings: Any,
) -> Field:
    """Return a field that compares texts by the Jaccard similarity of their shingles.

    threshold: the similarity to tune for, 0 < threshold <= 1. shingle: "words:n" or "chars:n". normalize:
    "none", "nfc" or "nfkc". casefold: whether case is ignored. Values are str, UTF-8 bytes or None (absent).

    Further settings, all optional:
    k: slots of a signature, 1 to 65,535 (default 128). slots: bits of a slot, 8, 16 or 32 (default 8, or 16
    when a band has 3 rows or fewer; datasketch's schemes: their full 32 or 64).
    recall: share of the pairs at the threshold that bands are chosen to find (default 0.99); or give the
    bands, bands=(b, r), b * r <= k.
    verify: "exact" (default) stores the shingle hashes and answers true Jaccard. "estimate" answers from
    signatures, in the smallest file; then half of the pairs right at the threshold are estimated below it,
    and are hits only with accept="possible" (see Collection.search).
    family: "fastsim/1" (default) or "minhash/1", which takes scheme= ("simindex", the default, or
    datasketch's "affine32", "affine64", "legacy", these with seed=, default 1: see `tokens`).
    keep: True stores the text itself, and get() returns it (default False). source: the column that feeds the
    field, if it is not called like the field. force: True accepts a candidate recall below 0.8 at the
    threshold.

    Raises SchemaError for unknown settings, values out of range, and bands of too little recall.
    """
    _known("text", settings)
    chosen = features.TextSettings(shingle=shingle, normalize=normalize, casefold=casefold)
    return _field("text", threshold, chosen, **settings)


def tokens(*, threshold: float = 0.5, **settings: Any) -> Field:
    """Return a field that compares sets by Jaccard similarity: iterables of str, bytes or ints, or ready
    uint64 hashes (a 1-d array).

    Settings as for `text`, but for shingle, normalize and casefold.

    For datasketch's MinHash objects: tokens(family="minhash/1", scheme="affine32", k=128, seed=1,
    verify="estimate"), with the scheme (2.0: `minhash.scheme`; before: "legacy"), num_perm and seed of the
    objects. Such a field takes MinHash and LeanMinHash objects, in put_many's columns and search_many also
    their hashvalues as an array (n, num_perm); raw tokens only as simindex.sketch.datasketch.features(...).
    """
    _known("tokens", settings)
    return _field("tokens", threshold, None, **settings)


def _known(kind: Kind, settings: dict[str, Any]) -> None:
    for name in settings:
        if name not in SETTINGS[kind]:
            raise SchemaError(unknown(f"setting of {kind}()", name, SETTINGS[kind]))


def _field(
    kind: Kind,
    threshold: object,
    text_settings: features.TextSettings | None,
    *,
    k: object = 128,
    slots: object = None,
    bands: object = None,
    recall: object = None,
    verify: object = "exact",
    family: object = "fastsim/1",
    seed: object = None,
    scheme: object = None,
    keep: object = False,
    source: object = None,
    force: object = False,
) -> Field:
    at = check_fraction("threshold", threshold, SchemaError)
    if at == 0.0:
        raise SchemaError("threshold is 0: a field needs one above 0 (a scan answers threshold=0 with k)")
    length = _integer("k", k, 1, 65_535)
    family_name = _one_of("family", family, FAMILIES)
    verify_name = _one_of("verify", verify, VERIFY)
    given = None if bands is None else _bands(bands, length)
    asked = None if given else check_fraction("recall", 0.99 if recall is None else recall, SchemaError)
    if given and recall is not None:
        raise SchemaError(
            f"recall={shown(recall)} and bands={shown(bands)}: bands decide the recall, give one of them"
        )
    if source is not None and (not isinstance(source, str) or not source):
        raise SchemaError(f"source is {shown(source)}: it names a column")
    keeps, forced = _flag("keep", keep), _flag("force", force)

    params = _params(family_name, length, slots, seed, scheme)
    found = (
        lsh.tune(at, asked or 0.99, family_name, params)
        if given is None
        else _described(family_name, params, at, given)
    )
    made, least = found.family, found.recall
    if least < MIN_CANDIDATE_RECALL and not forced:
        raise SchemaError(
            f"{found.bands.bands} bands of {found.bands.rows} rows find only {least:.3f} of the pairs at "
            f"threshold {at:g}, {MIN_CANDIDATE_RECALL} is required: use fewer rows, more bands, or "
            "force=True (dedup: --force-bands)"
        )
    return Field(
        kind, at, asked, found.bands.bands, found.bands.rows, found.sigmas, verify_name, family_name,
        dict(made.params), text_settings, keeps, source, forced,
    )  # fmt: skip


def _described(family: str, params: dict[str, Any], threshold: float, bands: tuple[int, int]) -> lsh.Tuning:
    if "slots" not in params and bands[1] <= NARROW_ROWS and sketch.family(family, params).slot_bits < 16:
        params = {**params, "slots": 16}  # 24 key bits or fewer would make unrelated items meet
    return lsh.describe(lsh.Bands(*bands, sketch.family(family, params)), threshold)


def _params(family: str, k: int, slots: object, seed: object, scheme: object) -> dict[str, Any]:
    params: dict[str, Any] = {"k": k}
    for name, value in (("slots", slots), ("seed", seed), ("scheme", scheme)):
        if value is not None:
            if name != "slots" and family == "fastsim/1":
                raise SchemaError(
                    f"{name}={shown(value)} belongs to family 'minhash/1'; this field's is {shown(family)}"
                )
            params[name] = value
    return params


def _bands(bands: object, k: int) -> tuple[int, int]:
    if not isinstance(bands, tuple | list) or len(bands) != 2:
        raise SchemaError(f"bands is {shown(bands)}: give (bands, rows), for example (16, 8)")
    b, r = _integer("bands", bands[0], 1, 65_535), _integer("rows of a band", bands[1], 1, 65_535)
    if b * r > k:
        raise SchemaError(f"{b} bands of {r} rows need {b * r} slots: k is {k}")
    return b, r


def check_fraction(
    name: str, value: object, error: type[SchemaError] | type[FeatureError] | type[Exception]
) -> float:
    """Return a number from 0 to 1 as float; anything else (NaN, bool too) raises `error` that names it."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise error(f"{name} is {shown(value)}: give a number from 0 to 1")
    if not 0 <= value <= 1:  # also NaN, and integers too large for a float
        raise error(f"{name} is {shown(value)}: give a number from 0 to 1")
    return float(value)


def _integer(name: str, value: object, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise SchemaError(f"{name} is {shown(value)}: give an integer")
    if not low <= int(value) <= high:
        raise SchemaError(f"{name} is {shown(value)}: give {low} to {high}")
    return int(value)


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise SchemaError(f"{name} is {shown(value)}: give True or False")
    return value


def _one_of(name: str, value: Any, valid: tuple[Any, ...]) -> Any:
    if not any(type(value) is type(one) and value == one for one in valid):
        raise SchemaError(unknown(name, value, map(str, valid)))
    return value
