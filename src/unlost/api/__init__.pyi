from unlost.api.loop_thread import LoopThread as LoopThread
from unlost.api.maps import build_map as build_map
from unlost.api.recovery import Recovery as Recovery
