package agent

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fleetling/fleetling/discovery/peer"
	"github.com/fleetling/fleetling/sources"
)

// metrics are ours beside those of controller-runtime. No label holds a name of
// an object: what Git says must not make time series.
type metrics struct {
	revision    *prometheus.GaugeVec
	lastContact prometheus.Gauge
	refused     *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	objects     *prometheus.GaugeVec
	requests    *prometheus.CounterVec
	repaired    *prometheus.CounterVec
	held        prometheus.Gauge
	peers       *prometheus.GaugeVec
	paused      prometheus.Gauge

	lastRefusal string
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		revision:    prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "fleetling_source_revision_info", Help: "The newest verified revision and its signer; always 1."}, []string{"revision", "signer"}),
		lastContact: prometheus.NewGauge(prometheus.GaugeOpts{Name: "fleetling_source_last_contact_seconds", Help: "Unix time at which the branch was last read."}),
		refused:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fleetling_verify_refused_total", Help: "Heads that were refused, by reason."}, []string{"reason"}),
		duration:    prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "fleetling_pass_duration_seconds", Help: "Time that the steps of a pass take.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 10)}, []string{"step"}),
		objects:     prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "fleetling_objects", Help: "Objects by add-on and state: total, ready, failed, held."}, []string{"addon", "state"}),
		requests:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fleetling_apply_requests_total", Help: "Applies and deletes, by what came of them."}, []string{"result"}),
		repaired:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fleetling_drift_repaired_total", Help: "Objects that others had changed or deleted."}, []string{"addon"}),
		held:        prometheus.NewGauge(prometheus.GaugeOpts{Name: "fleetling_prune_held", Help: "Objects whose deletion waits for consent."}),
	}
	m.peers = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "fleetling_peers", Help: "Other members of the ClusterSet, by state."}, []string{"state"})
	m.paused = prometheus.NewGauge(prometheus.GaugeOpts{Name: "fleetling_paused", Help: "1 while a person has paused the agent, else 0."})
	for _, c := range []prometheus.Collector{m.paused, m.revision, m.lastContact, m.refused, m.duration, m.objects, m.requests, m.repaired, m.held, m.peers} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// peersAre takes the other members by state.
func (m *metrics) peersAre(counts map[peer.State]int) {
	m.peers.Reset()
	for state, n := range counts {
		m.peers.WithLabelValues(string(state)).Set(float64(n))
	}
}

// timed runs a step and takes its time.
func (m *metrics) timed(step string, run func() error) error {
	start := time.Now()
	err := run()
	m.duration.WithLabelValues(step).Observe(time.Since(start).Seconds())
	return err
}

// observe takes the figures of a pass.
func (m *metrics) observe(o outcome) {
	m.revision.Reset()
	if v := o.found.verified; v != nil {
		m.revision.WithLabelValues(v.Commit, v.Signer.Name).Set(1)
	}
	m.lastContact.Set(float64(o.found.lastContact.Unix()))
	m.refusal(o.found)
	m.objects.Reset()
	held := 0
	for _, v := range o.addOns() {
		counts := v.counts()
		held += counts.Held
		for state, n := range map[string]int{"total": counts.Total, "ready": counts.Ready, "failed": counts.Failed, "held": counts.Held} {
			m.objects.WithLabelValues(v.name, state).Set(float64(n))
		}
		m.repaired.WithLabelValues(v.name).Add(float64(len(v.report.Repaired)))
		m.requests.WithLabelValues("failed").Add(float64(v.report.Refused))
		for action, subjects := range v.report.Changes.ToGroupedMap() {
			m.requests.WithLabelValues(action.String()).Add(float64(len(subjects)))
		}
	}
	m.held.Set(float64(held))
	m.paused.Set(0)
	if o.pause.holds() {
		m.paused.Set(1)
	}
}

// refusal counts a refused head once, however often it is looked at.
func (m *metrics) refusal(f findings) {
	text := ""
	if f.refusal != nil {
		text = f.head + " " + f.refusal.Error()
	}
	if text != "" && text != m.lastRefusal {
		m.refused.WithLabelValues(string(sources.ReasonOf(f.refusal))).Inc()
	}
	m.lastRefusal = text
}
