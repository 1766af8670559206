-- Prints wrk's whole latency histogram after the run, read straight from its memory: one line
-- "latency <microseconds> <count>" per value, between two marker lines. wrk has put phantom
-- samples into it by then (stats_correct); wrk.py takes them out again.
local ffi = require("ffi")
ffi.cdef[[
typedef struct { uint64_t count, limit, min, max; uint64_t data[]; } lab_stats;
]]

function done(summary, latency, requests)
  local stats = ffi.cast("lab_stats **", latency)[0]
  local low, high = tonumber(stats.min), tonumber(stats.max)
  print(string.format("latency begin %.0f %.0f", summary.duration, summary.requests))
  if tonumber(stats.count) > 0 then
    for i = low, high do
      local n = tonumber(stats.data[i])
      if n > 0 then print(string.format("latency %.0f %.0f", i, n)) end
    end
  end
  print("latency end")
end
