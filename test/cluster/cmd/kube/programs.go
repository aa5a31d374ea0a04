package main

import (
	"os"
	_ "time/tzdata" // time zones of CronJobs, for machines without time zone data

	_ "k8s.io/client-go/plugin/pkg/client/auth" // all authentication methods of kubectl
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the clients
	_ "k8s.io/component-base/metrics/prometheus/version"  // the version metric
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// The following functions are the bodies of upstream's main functions.

func kubeAPIServer() int {
	return cli.Run(apiserver.NewAPIServerCommand())
}

func kubeControllerManager() int {
	return cli.Run(controllermanager.NewControllerManagerCommand())
}

func kubeScheduler() int {
	return cli.Run(scheduler.NewSchedulerCommand())
}

func kubectl() int {
	// Set before the command is created, because creating it may log. Parsing
	// the flags reports an invalid value.
	_, _ = logs.GlogSetter(kubectlcmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(kubectlcmd.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
	return 0
}
