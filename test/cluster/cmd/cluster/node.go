package main

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/chartwright/chartwright/test/cluster/internal/cloud"
	"github.com/chartwright/chartwright/test/cluster/internal/local"
	"github.com/chartwright/chartwright/test/cluster/internal/node"
)

// requirements returns the command `cluster requirements`.
func requirements() *cobra.Command {
	return &cobra.Command{
		Use:   "requirements",
		Short: "Print what this machine does not have for a node that runs containers; exit with code 1 if something is missing",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			missing := node.Missing()
			for _, what := range missing {
				say(cmd)("missing: %s", what)
			}
			if len(missing) > 0 {
				return errSilent
			}
			return nil
		},
	}
}

// restartNode returns the command `cluster restart-node`.
func restartNode(dir *string) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "restart-node",
		Short: "Kill all programs and containers of the real node, and start the node again",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return local.RestartNode(cmd.Context(), *dir, timeout)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "maximum duration of the start")
	return cmd
}

// machine returns the command `cluster machine`, which `cluster up` calls in new
// namespaces.
func machine() *cobra.Command {
	return &cobra.Command{
		Use:    "machine CONFIG",
		Short:  "Run the first process of a real node",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(_ *cobra.Command, args []string) error { return node.Run(args[0]) },
	}
}

// cloudController returns the command `cluster cloud`, which `cluster up` calls.
func cloudController() *cobra.Command {
	var kubeconfig, volumes, address string
	var network node.Network
	cmd := &cobra.Command{
		Use:    "cloud",
		Short:  "Create volumes and set addresses of load balancers",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return err
			}
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				return err
			}
			health := &http.Server{Addr: address, ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
			failed := make(chan error, 2)
			go func() { failed <- health.ListenAndServe() }()
			controller := &cloud.Cloud{Client: client, Volumes: volumes, Balancer: network.LoadBalancer, Log: say(cmd)}
			go func() { failed <- controller.Run(cmd.Context()) }()
			return errors.Join(<-failed, health.Close())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig `file`")
	flags.StringVar(&volumes, "volumes", "", "`folder` for the volumes")
	flags.IntVar(&network.Second, "network", 0, "second `byte` of the addresses of the node")
	flags.StringVar(&address, "address", "", "`address` for health checks")
	for _, name := range []string{"kubeconfig", "volumes", "network", "address"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(fmt.Sprintf("flag %s: %v", name, err))
		}
	}
	return cmd
}
