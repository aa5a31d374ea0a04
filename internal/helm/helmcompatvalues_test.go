package helm

import (
	"strings"
)

// valueCases returns values that Helm or the operator could convert differently.
func valueCases() []upgradeCase {
	const (
		emptied = "Helm's patch removes the key; an apply sets what the API server makes of null when it creates the object"
		byKey   = "Helm's patch takes two ports of one number for the same"
	)
	cases := []upgradeCase{
		{name: "ConfigMap data to binaryData", from: configMap("data: {a: b}"), to: configMap("binaryData: {a: Yg==}")},
		{name: "ConfigMap data null", from: configMap("data: {a: b}"), to: configMap("data: null")},
		{name: "ConfigMap key null", from: configMap("data: {a: null, b: c}")},
		{name: "ConfigMap key to null", from: configMap("data: {a: b}"), to: configMap("data: {a: null}"), differs: emptied},
		{name: "ConfigMap number", from: configMap("data: {a: 1}")},
		{name: "Secret data null", from: secret("data: {a: null}")},
		{name: "Secret stringData null", from: secret("stringData: {a: null, b: c}")},
		{name: "Secret stringData null, whole", from: secret("stringData: null")},
		{name: "Secret data null and stringData", from: secret("data: null, stringData: {a: b}")},
		{name: "Secret stringData number", from: secret("stringData: {a: 1}")},
		{name: "Secret stringData list", from: secret("stringData: [a]")},
		{name: "Secret stringData to null", from: secret("stringData: {a: b, c: d}"), to: secret("stringData: {a: null, c: d}"), differs: "Helm's patch leaves the old value"},
		{name: "Secret stringData over data", from: secret("data: {a: Yg==}, stringData: {a: c}")},
		{name: "Secret stringData dropped", from: secret("data: {a: Yg==}, stringData: {a: c}"), to: secret("data: {a: Yg==}")},
		{name: "Secret no base64", from: secret("data: {a: '%'}")},
		{name: "Secret line break", from: secret(`data: {a: "Yg==\n"}`)},
		{name: "limit to null", from: ofContainer("resources: {limits: {cpu: 1, memory: 1Gi}}, "), to: ofContainer("resources: {limits: {cpu: null, memory: 1Gi}}, "), differs: emptied},
		{name: "port of two protocols", from: service("ports: [{name: a, port: 53}]"), to: service("ports: [{name: a, port: 53}, {name: b, port: 53, protocol: UDP}]"), differs: byKey},
		{name: "port number", from: service("ports: [{name: a, port: 53, targetPort: 53}]"), to: service("ports: [{name: a, port: 54, targetPort: 53}]")},
		{name: "targetPort to a name", from: service("ports: [{name: a, port: 53}]"), to: service("ports: [{name: a, port: 53, targetPort: dns}]")},
		{name: "targetPort to the default", from: service("ports: [{name: a, port: 53, targetPort: dns}]"), to: service("ports: [{name: a, port: 53}]")},
		{name: "env changes order", from: ofContainer("env: [{name: A, value: a}, {name: B, value: b}], "), to: ofContainer("env: [{name: B, value: b}, {name: A, value: a}], ")},
		{name: "hostNetwork off", from: workload("Deployment", "", "hostNetwork: true, ", "ports: [{containerPort: 80}], "), to: ofContainer("ports: [{containerPort: 80}], ")},
		{name: "replicas to null", from: ofSpec("replicas: 3, "), to: ofSpec("replicas: null, ")},
		{name: "replicas dropped", from: ofSpec("replicas: 3, "), to: ofSpec("")},
		{name: "env to an empty list", from: ofContainer("env: [{name: A, value: a}], "), to: ofContainer("env: [], ")},
		{name: "env to null", from: ofContainer("env: [{name: A, value: a}], "), to: ofContainer("env: null, ")},
		{name: "containers replaced", from: ofSpec(""), to: strings.Replace(ofSpec(""), "name: c,", "name: d,", 1)},
		{name: "serviceAccountName dropped", from: ofPod("serviceAccountName: a, "), to: ofPod("")},
		{name: "imagePullSecrets twice", from: ofPod("imagePullSecrets: [{name: a}, {name: a}], "), to: ofPod("imagePullSecrets: [{name: b}], ")},
		{name: "status in the manifest", from: strings.Replace(service("ports: [{port: 80}]"), "spec:", "status: {loadBalancer: {}}, spec:", 1)},
		{name: "label null", from: strings.Replace(ofSpec(""), "labels: {a: b}", "labels: {a: b, c: null}", 1)},
		{name: "creationTimestamp null", from: strings.Replace(ofSpec(""), "metadata: {labels", "metadata: {creationTimestamp: null, labels", 1)},
	}
	for _, field := range []string{
		"replicas: 99999999999", "replicas: 99999999999999999999", "replicas: -99999999999", "replicas: 1.5", "replicas: 1.0", "replicas: 1e0", "replicas: 1e11", "replicas: '1'",
		"replicas: null", "replicas: true", "paused: 'true'", "paused: 1", "strategy: {rollingUpdate: {maxSurge: 99999999999}}", "progressDeadlineSeconds: 4294967297", "bogus: 1",
	} {
		cases = append(cases, upgradeCase{name: field, from: ofSpec(field + ", ")})
	}
	for _, field := range []string{
		"command: [1]", "args: null", "args: [null]", "ports: [{containerPort: 99999999999}]", "ports: [{containerPort: 4294967376}]", "ports: [{containerPort: 80.5}]",
		"ports: [{containerPort: '80'}]", "env: [{name: A, value: 1}]", "env: [{name: A, value: true}]", "env: [null]", "livenessProbe: {tcpSocket: {port: 99999999999}}",
		"livenessProbe: {tcpSocket: {port: 1.5}}", "livenessProbe: {periodSeconds: 4294967297, tcpSocket: {port: 80}}", "resources: {limits: {cpu: 1}}", "resources: {limits: {cpu: 0.5}}",
		"resources: {limits: {memory: 99999999999}}", "resources: {limits: {memory: 1e9}}", "resources: {limits: {memory: null, cpu: 1}}", "resources: null", "imagePullPolicy: ''",
		"securityContext: {runAsUser: 2000000000000}", "securityContext: {runAsUser: 1.5}", "securityContext: {runAsUser: 99999999999999999999}",
	} {
		cases = append(cases, upgradeCase{name: "container " + field, from: ofContainer(field + ", ")})
	}
	for _, field := range []string{
		"volumes: null", "nodeSelector: null", "nodeSelector: {a: null}", "nodeSelector: {a: 1}", "affinity: {}", "affinity: null", "terminationGracePeriodSeconds: 99999999999",
		"securityContext: {fsGroup: 1e3}", "tolerations: [null]", "volumes: [{name: v, secret: {secretName: a, defaultMode: 4294967297}}]",
	} {
		cases = append(cases, upgradeCase{name: "pod " + field, from: ofPod(field + ", ")})
	}
	return cases
}
