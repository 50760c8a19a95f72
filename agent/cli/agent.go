package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetling/fleetling/agent"
)

func agentCommand(world World) *cobra.Command {
	var configFile, kubeconfig, dataDir, level string
	leaderElect := true
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run the agent of this cluster",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := newLogger(world, level)
			if err != nil {
				return err
			}
			api, err := agentREST(kubeconfig, world)
			if err != nil {
				return err
			}
			api.QPS = -1 // API Priority and Fairness paces us
			api.UserAgent = "fleetling"
			debug.SetGCPercent(50) // memory is dearer here than the little time that this takes
			err = agent.Run(cmd.Context(), agent.Options{
				ConfigFile: configFile, DataDir: dataDir, Proxy: world.Proxy, REST: api, Log: logger,
				Hostname: world.Hostname, LeaderElect: leaderElect,
				APIServer: world.APIServer, NodeIP: world.NodeIP,
			})
			if errors.Is(err, agent.ErrConfigChanged) {
				logger.Info("stopped: the configuration has changed")
				return nil
			}
			return err
		},
	}
	cmd.Flags().StringVar(&configFile, "config", "/etc/fleetling/config.yaml", "configuration file")
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig, when not in the cluster")
	cmd.Flags().StringVar(&dataDir, "data-dir", "", "folder for the clone (default: dataDir of the configuration)")
	cmd.Flags().StringVar(&level, "log-level", "info", "info or debug")
	cmd.Flags().BoolVar(&leaderElect, "leader-elect", true, "hold a Lease, so that one agent writes at a time")
	return cmd
}

// serviceAccount is where kubelet puts a Pod's credentials.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/"

// agentREST is restConfig for a Pod, too, that kubelet has told of no Service
// kubernetes, since there was none yet.
func agentREST(kubeconfig string, world World) (*rest.Config, error) {
	config, err := restConfig(kubeconfig)
	if err == nil || kubeconfig != "" || world.APIServer+world.NodeIP == "" {
		return config, err
	}
	if _, missing := os.Stat(serviceAccount + "token"); missing != nil {
		return nil, err
	}
	return &rest.Config{
		BearerTokenFile: serviceAccount + "token",
		TLSClientConfig: rest.TLSClientConfig{CAFile: serviceAccount + "ca.crt"},
	}, nil
}

// newLogger logs JSON lines. What client-go logs by itself goes the same way.
func newLogger(world World, level string) (logr.Logger, error) {
	var slogLevel slog.Level
	if err := slogLevel.UnmarshalText([]byte(level)); err != nil {
		return logr.Logger{}, fmt.Errorf("--log-level %q: info or debug", level)
	}
	logger := logr.FromSlogHandler(slog.NewJSONHandler(world.Err, &slog.HandlerOptions{Level: slogLevel}))
	log.SetLogger(logger)
	klog.SetLogger(logger)
	return logger, nil
}
