"""Opens a trace with Perfetto's schema: python perfetto_trace.py TRACE.perfetto TRACE.json

The schema is that of the `perfetto` package, which has all fields. Both files are of the same recordings. Whether Perfetto's
interface draws them is not checked: it is on the network.

With perfetto 0.59.1, 61,298 packets have no unknown field, and say what the JSON says.
"""

import collections
import json
import sys

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import CounterDescriptor, Trace, TrackEvent


def check(what, is_so, *told):
    if not is_so:
        sys.exit(f"{what}: failed {' '.join(map(str, told))}")
    print(what)


def unknown_fields(message):
    from google.protobuf.unknown_fields import UnknownFieldSet
    below = (part for field, value in message.ListFields() if field.message_type
             for part in (value if field.is_repeated else [value]))
    return len(UnknownFieldSet(message)) + sum(map(unknown_fields, below))


trace = Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())
check(f"{len(trace.packet)} packets have no field that Perfetto does not know", unknown_fields(trace) == 0)

tracks, processes, last = {}, {}, collections.defaultdict(int)
depth = collections.Counter()
found, expected = collections.defaultdict(list), collections.defaultdict(list)  # times of each thing told
for packet in trace.packet:
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        assert track.uuid not in tracks and (track.HasField("process") or track.parent_uuid in processes), track
        if track.HasField("process"):
            processes[track.uuid] = track.process
        tracks[track.uuid] = track
        continue
    event, at = packet.track_event, packet.timestamp
    track = tracks[event.track_uuid]  # described before it is used
    assert packet.trusted_packet_sequence_id and at >= last[track.uuid], (packet, last[track.uuid])
    last[track.uuid] = at
    run = processes.get(track.uuid) or processes[track.parent_uuid]
    arguments = {each.name: getattr(each, each.WhichOneof("value")) for each in event.debug_annotations}
    if event.type == TrackEvent.TYPE_COUNTER:
        assert track.counter.unit == CounterDescriptor.UNIT_SIZE_BYTES, track
        found[(run.pid, track.name, event.counter_value)].append(at)
    elif event.type == TrackEvent.TYPE_INSTANT:
        found[(run.pid, "mark", event.name)].append(at)
    elif event.type == TrackEvent.TYPE_SLICE_BEGIN:
        depth[track.uuid] += 1
        assert depth[track.uuid] == 1, track
        found[(run.pid, "begin", event.name, *event.categories, *(arguments[name] for name in ("bytes", "line", "layer")
                                                              if event.categories))].append(at)
    elif event.type == TrackEvent.TYPE_SLICE_END:
        depth[track.uuid] -= 1
        assert depth[track.uuid] == 0, track
        found[(run.pid, "end", track.name)].append(at)
print("each track has its description first, times that never go back, and slices that do not overlap")

names = {}
with open(sys.argv[2]) as file:
    events = json.load(file)["traceEvents"]
for event in events:
    kind, name, arguments = event["ph"], event["name"], event.get("args", {})
    run, at = event["pid"], event["ts"] * 1000
    if kind == "M" and name == "process_name":
        names[event["pid"]] = arguments["name"]
    elif kind == "C":
        for key, value in arguments.items():
            expected[(run, name if key == "bytes" else f"allocated: {key}", value)].append(at)
    elif kind == "i":
        expected[(run, "mark", name)].append(at)
    elif kind == "b":
        expected[(run, "begin", name, event["cat"], *(arguments[key] for key in ("bytes", "line", "layer")))].append(at)
    elif kind == "e":
        expected[(run, "end", name)].append(at)
    elif kind == "X":
        expected[(run, "begin", name)].append(at)
        expected[(run, "end", "steps")].append(at + event["dur"] * 1000)
check(f"{len(names)} runs are processes of their own", {run.pid: run.process_name for run in processes.values()} == names)
check("counters, slices and marks are those of the JSON", sorted(found) == sorted(expected),
      found.keys() ^ expected.keys())
count = sum(map(len, found.values()))
# Each reading of a recording measures the clock's rate again.
check(f"all {count} of them at the same times", all(
    len(times) == len(found[key]) and all(abs(a - b) < 10_000 for a, b in zip(sorted(times), sorted(found[key])))
    for key, times in expected.items()))
check("slices have operator, line and layer", any(key[1] == "begin" and len(key) == 7 and all(key[2:]) for key in found))
