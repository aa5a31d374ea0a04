package main

import (
	_ "time/tzdata" // time zones of CronJobs, for machines without time zone data

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the clients
	_ "k8s.io/component-base/metrics/prometheus/version"  // the version metric
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
