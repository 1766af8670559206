// Command cadvisor measures containers with the library of cAdvisor and exports them for
// Prometheus. It takes the place of the upstream image where that cannot be pulled: the same
// container_* and machine_* series, flags and addresses for what the lab uses, without the
// web interface, the REST API and the storage back ends.
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/cadvisor/cache/memory"
	"github.com/google/cadvisor/container"
	v2 "github.com/google/cadvisor/info/v2"
	"github.com/google/cadvisor/manager"
	"github.com/google/cadvisor/metrics"
	"github.com/google/cadvisor/utils/sysfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	_ "github.com/google/cadvisor/container/docker/install"
	_ "github.com/google/cadvisor/fs/btrfs/install"
	_ "github.com/google/cadvisor/fs/overlay/install"
	_ "github.com/google/cadvisor/fs/tmpfs/install"
	_ "github.com/google/cadvisor/fs/vfs/install"
)

// settings are the flags of upstream's cadvisor command that this one knows beside those of
// the library itself.
type settings struct {
	address          string
	endpoint         string
	labels           metrics.ContainerLabelsFunc
	metrics          container.MetricSet
	storageDuration  time.Duration
	rawCgroups       []string
	environmentNames []string
}

func parse() settings {
	ip := flag.String("listen_ip", "", "address to listen on; empty: all")
	port := flag.Int("port", 8080, "port to listen on")
	endpoint := flag.String("prometheus_endpoint", "/metrics", "where the metrics are")
	duration := flag.Duration("storage_duration", 2*time.Minute, "how long samples are kept")
	allLabels := flag.Bool("store_container_labels", true, "export every label of a container")
	someLabels := flag.String("whitelisted_container_labels", "", "labels to export when not all are")
	rawCgroups := flag.String("raw_cgroup_prefix_whitelist", "", "cgroups to report with -docker_only")
	environment := flag.String("env_metadata_whitelist", "", "prefixes of environment names to export")

	// What upstream leaves out by default.
	disabled := container.MetricSet{
		container.MemoryNumaMetrics: {}, container.NetworkTcpUsageMetrics: {},
		container.NetworkUdpUsageMetrics: {}, container.NetworkAdvancedTcpUsageMetrics: {},
		container.ProcessSchedulerMetrics: {}, container.ProcessMetrics: {},
		container.HugetlbUsageMetrics: {}, container.ReferencedMemoryMetrics: {},
		container.CPUTopologyMetrics: {}, container.ResctrlMetrics: {}, container.CPUSetMetrics: {},
	}
	enabled := container.MetricSet{}
	flag.Var(&disabled, "disable_metrics", "groups of metrics to leave out")
	flag.Var(&enabled, "enable_metrics", "the only groups of metrics to export")
	flag.Parse()

	set := settings{
		address:          net.JoinHostPort(*ip, strconv.Itoa(*port)),
		endpoint:         *endpoint,
		labels:           metrics.DefaultContainerLabels,
		metrics:          container.AllMetrics.Difference(disabled),
		storageDuration:  *duration,
		rawCgroups:       strings.Split(*rawCgroups, ","),
		environmentNames: strings.Split(*environment, ","),
	}
	if len(enabled) > 0 {
		set.metrics = enabled
	}
	if !*allLabels {
		set.labels = metrics.BaseContainerLabels(strings.Split(*someLabels, ","))
	}
	return set
}

// metricsHandler answers each scrape with the newest sample of every container.
func metricsHandler(containers manager.Manager, set settings) http.Handler {
	newest := v2.RequestOptions{IdType: v2.TypeName, Count: 1, Recursive: true}
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		metrics.NewPrometheusCollector(containers, set.labels, set.metrics, clock.RealClock{}, newest),
		metrics.NewPrometheusMachineCollector(containers, set.metrics),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

func run(set settings) error {
	containers, err := manager.New(memory.New(set.storageDuration, nil), sysfs.NewRealSysFs(),
		manager.HousekeepingConfigFlags, set.metrics, http.DefaultClient, set.rawCgroups,
		set.environmentNames, "", 0)
	if err != nil {
		return fmt.Errorf("cannot read this machine's cgroups: %w", err)
	}
	if err := containers.Start(); err != nil {
		return fmt.Errorf("cannot watch containers: %w", err)
	}

	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-stopped
		if err := containers.Stop(); err != nil {
			klog.Errorf("stopping: %v", err)
		}
		os.Exit(0)
	}()

	mux := http.NewServeMux()
	mux.Handle(set.endpoint, metricsHandler(containers, set))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	return http.ListenAndServe(set.address, mux)
}

func main() {
	klog.InitFlags(nil)
	defer klog.Flush()
	if err := run(parse()); err != nil {
		klog.Exitf("cadvisor: %v", err)
	}
}
