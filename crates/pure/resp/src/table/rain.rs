//! raingauge's own commands.

use super::*;

rows! {
    "module"

    RainCount "rain.count" -4 [READONLY NO_MULTI] [] Rain
        [] "0.1.0" "Returns the count of a key between two times.";
    RainCounts "rain.counts" -5 [READONLY NO_MULTI] [] Rain
        [] "0.1.0" "Returns the counts of several keys, each between two times.";
    RainSeries "rain.series" -5 [READONLY NO_MULTI] [] Rain
        [] "0.1.0" "Returns counts of a key by quarter hour, hour or day.";
    RainTop "rain.top" 5 [READONLY NO_MULTI] [] Rain
        [] "0.1.0" "Returns the largest keys of a counter.";
    RainEvent "rain.event" -2 [NO_MULTI] [] Rain
        [] "0.1.0" "Accepts events.";
    RainAdd "rain.add" -5 [NO_MULTI] [] Rain
        [] "0.1.0" "Accepts one event from fields.";
    RainOnce "rain.once" -3 [WRITE DENYOOM NO_MULTI] [] Objects
        [] "0.1.0" "Runs a command once for an id, however often it is sent.";
    RainHot "rain.hot" -1 [READONLY NO_MULTI] [] Rain
        [] "0.1.0" "Returns the keys that are used most.";
    RainSizes "rain.sizes" -1 [READONLY NO_MULTI] [] Rain
        [] "0.1.0" "Returns the distribution of the sizes of values.";
    RainDoctor "rain.doctor" -1 [READONLY NO_MULTI] [] Rain
        [] "0.1.0" "Returns clients that would gain from pipelines.";
}
