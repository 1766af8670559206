"""The lab's vocabulary: frozen records. No I/O.

Units are in the names: `_rps` requests per second, `_ms` milliseconds, `_s` seconds.
`None` always means that nobody can tell, never zero. Times are aware and in UTC.
"""

from lab.model.experiment import *
from lab.model.finding import *
from lab.model.latency import *
from lab.model.observation import *
from lab.model.own_lever import OwnLever, SettingChange
from lab.model.record import *
from lab.model.recording import *
from lab.model.remark import *
from lab.model.row import *
from lab.model.snapshot import *
from lab.model.trial import *
from lab.model.verdict import *
