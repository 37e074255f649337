// What `scripts/peers install victoriametrics` builds from. It is no part of raingauge.
module raingauge.peers

go 1.26

require github.com/VictoriaMetrics/VictoriaMetrics v1.140.0

tool github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-metrics
