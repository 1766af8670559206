"""The lab's vocabulary: frozen dataclasses that validate themselves. No I/O.

Units are in the names: `_rps` requests per second, `_ms` milliseconds, `_s` seconds.
`None` always means that nobody can tell, never zero. Times are aware and in UTC.
"""

from lab.model.curves import (
    LEAST_BEYOND,
    Curve,
    Curves,
    PanelAnswers,
    PanelLine,
    Panels,
    needed_samples,
)
from lab.model.experiment import (
    AGAIN,
    ARRIVALS,
    FAILURE,
    MODES,
    Arrivals,
    Expect,
    Experiment,
    GivesUp,
    Json,
    Mode,
    Request,
    Spike,
    ToxicStep,
    TrialPlan,
)
from lab.model.observation import Observation, Series, SeriesError, bucket_quantile
from lab.model.own_lever import OwnLever
from lab.model.recording import ALLOC, CPU, LOCK, RECORDED, UNITS, Recording
from lab.model.result import (
    ALL_CPUS,
    BESIDE,
    FEWER_CPUS,
    KNEE,
    REASON_SEPARATOR,
    STRAIGHT,
    THROUGH,
    Counts,
    CpuSplit,
    Finding,
    Judgement,
    Latency,
    Measurement,
    Reading,
    Row,
    Second,
    TimeSplit,
    answered,
    around_server_us,
    error_share,
    good_share,
    goodput,
    lost_rps,
)
from lab.model.trial import (
    AWAY,
    CLOCK_SET,
    DAMAGED,
    ENDED_AS_LOST,
    NOT_BACK,
    NOT_BEGUN,
    Exported,
    Fairness,
    GivenUp,
    Identity,
    Peak,
    ScriptedToxic,
    Snapshot,
    Spread,
    ToxicState,
    TrialRecord,
    Unwatched,
    Usage,
    WarmCycle,
    Warmth,
)
from lab.model.verdict import (
    AS_IT_IS,
    EXTRAPOLATED,
    NONE,
    OFFERED,
    RESOURCES,
    STRONG,
    UNKNOWN,
    WEAK,
    Bound,
    Condition,
    Demand,
    Evidence,
    Standing,
    Strength,
    Verdict,
    strength_text,
)
