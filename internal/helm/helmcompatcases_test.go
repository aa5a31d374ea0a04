package helm

import (
	"fmt"
	"strings"
)

// manifestOf returns the manifest of an object in one line of YAML.
func manifestOf(apiVersion, kind, name, fields string) string {
	return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s}, %s}", apiVersion, kind, name, fields)
}

// workload returns the manifest of an apps/v1 object with the given fields of its spec,
// its pod spec and its container.
func workload(kind, spec, pod, container string) string {
	if kind == "StatefulSet" {
		spec = "serviceName: s, " + spec
	}
	return manifestOf("apps/v1", kind, "x", fmt.Sprintf("spec: {%sselector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {%scontainers: [{%sname: c, image: i}]}}}", spec, pod, container))
}

func ofSpec(spec string) string { return workload("Deployment", spec, "", "") }

func ofPod(pod string) string { return workload("Deployment", "", pod, "") }

func ofContainer(some string) string { return workload("Deployment", "", "", some) }

func ofVolume(source string) string { return ofPod("volumes: [{name: v" + source + "}], ") }

func service(spec string) string { return manifestOf("v1", "Service", "x", "spec: {"+spec+"}") }

func configMap(some string) string { return manifestOf("v1", "ConfigMap", "x", some) }

func secret(some string) string { return manifestOf("v1", "Secret", "x", some) }

func ingress(spec string) string {
	return manifestOf("networking.k8s.io/v1", "Ingress", "x", "spec: {"+spec+"}")
}

func autoscaler(version, more string) string {
	return manifestOf("autoscaling/"+version, "HorizontalPodAutoscaler", "x", "spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: x}"+more+"}")
}

func budget(more string) string {
	return manifestOf("policy/v1", "PodDisruptionBudget", "x", "spec: {selector: {matchLabels: {a: b}}, "+more+"}")
}

func networkPolicy(more string) string {
	return manifestOf("networking.k8s.io/v1", "NetworkPolicy", "x", "spec: {podSelector: {}, "+more+"}")
}

func persistentVolume(source string) string {
	return manifestOf("v1", "PersistentVolume", "NAME", "spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], "+source+"}")
}

func webhook(kind, more string) string {
	return manifestOf("admissionregistration.k8s.io/v1", kind, "NAME", "webhooks: [{name: a.example.com, sideEffects: None, admissionReviewVersions: [v1], rules: [{apiGroups: [no.example.com], apiVersions: [v1], operations: [CREATE], resources: [none]}], "+more+"}]")
}

func admissionPolicy(more string) string {
	return manifestOf("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "NAME", "spec: {matchConstraints: {resourceRules: [{apiGroups: [no.example.com], apiVersions: [v1], operations: [CREATE], resources: [none]}]}, validations: [{expression: 'true', "+more+"}]}")
}

func policyBinding(ref string) string {
	return manifestOf("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "NAME", "spec: {policyName: a, validationActions: [Deny], paramRef: {parameterNotFoundAction: Deny, "+ref+"}}")
}

func priorityLevel(spec string) string {
	return manifestOf("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", "NAME", "spec: {"+spec+"}")
}

func definition(conversion string) string {
	return manifestOf("apiextensions.k8s.io/v1", "CustomResourceDefinition", "things.NAME.example.com", "spec: {group: NAME.example.com, scope: Namespaced, names: {plural: things, kind: Thing}, "+conversion+"versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}")
}

func cronJob(spec, pod string) string {
	return manifestOf("batch/v1", "CronJob", "x", "spec: {schedule: '* * * * *', jobTemplate: {spec: {"+spec+"template: {spec: {restartPolicy: Never, "+pod+"containers: [{name: c, image: i}]}}}}}")
}

func job(spec, image string) string {
	return manifestOf("batch/v1", "Job", "x", "spec: {"+spec+"template: {spec: {restartPolicy: Never, containers: [{name: c, image: "+image+"}]}}}")
}

func clusterRole(more string) string {
	return manifestOf("rbac.authorization.k8s.io/v1", "ClusterRole", "NAME", more)
}

func roleBinding(subject string) string {
	return manifestOf("rbac.authorization.k8s.io/v1", "RoleBinding", "x", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}, subjects: [{"+subject+"}]")
}

// members holds the names and the YAML of the members of a union.
type members [][2]string

// turns returns a case for each ordered pair of members.
func (m members) turns(what string, write func(string) string) []upgradeCase {
	var cases []upgradeCase
	for _, from := range m {
		for _, to := range m {
			if from != to {
				cases = append(cases, upgradeCase{name: fmt.Sprintf("%s from %s to %s", what, from[0], to[0]), from: write(from[1]), to: write(to[1])})
			}
		}
	}
	return cases
}

// unionCases returns the cases for all unions of the built-in kinds.
func unionCases() []upgradeCase {
	cases := members{
		{"nothing", ""},
		{"RollingUpdate", "strategy: {type: RollingUpdate}, "},
		{"maxSurge", "strategy: {rollingUpdate: {maxSurge: 1}}, "},
		{"Recreate", "strategy: {type: Recreate}, "},
	}.turns("strategy", ofSpec)
	for _, kind := range []string{"StatefulSet", "DaemonSet"} {
		update := members{
			{"nothing", ""},
			{"RollingUpdate", "updateStrategy: {type: RollingUpdate}, "},
			{"maxUnavailable", "updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}, "},
			{"OnDelete", "updateStrategy: {type: OnDelete}, "},
		}.turns(kind+" update strategy", func(spec string) string { return workload(kind, spec, "", "") })
		for i := range update {
			// Helm's patch keeps the default.
			update[i].helmRefuses = kind == "StatefulSet" && strings.HasSuffix(update[i].name, " from nothing to OnDelete")
		}
		cases = append(cases, update...)
	}
	for _, source := range []string{
		", configMap: {name: a}", ", secret: {secretName: a}", ", hostPath: {path: /a}", ", persistentVolumeClaim: {claimName: a}", ", nfs: {server: a, path: /a}",
		", projected: {sources: [{configMap: {name: a}}]}", ", downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}", ", csi: {driver: a}", ", image: {reference: a}",
		", ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}", ", emptyDir: {medium: Memory}",
	} {
		cases = append(cases, members{{"nothing", ""}, {"source" + source, source}}.turns("volume", ofVolume)...)
	}
	cases = append(cases, members{{"nothing", "{name: u}, {name: v}"}, {"two sources", "{name: v, secret: {secretName: a}}, {name: u, configMap: {name: a}}"}}.
		turns("volumes", func(list string) string { return ofPod("volumes: [" + list + "], ") })...)
	for _, kind := range []string{"StatefulSet", "DaemonSet"} {
		cases = append(cases, upgradeCase{name: kind + " volume", from: workload(kind, "", "volumes: [{name: v}], ", ""), to: workload(kind, "", "volumes: [{name: v, secret: {secretName: a}}], ", "")})
	}
	handlers := members{{"httpGet", "httpGet: {path: /, port: 80}"}, {"tcpSocket", "tcpSocket: {port: 80}"}, {"exec", "exec: {command: [a]}"}, {"grpc", "grpc: {port: 80}"}}
	for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		if probe != "livenessProbe" {
			handlers = handlers[:2]
		}
		cases = append(cases, handlers.turns(probe, func(handler string) string { return ofContainer(probe + ": {" + handler + "}, ") })...)
	}
	cases = append(cases, members{{"httpGet", "httpGet: {port: 80}"}, {"exec", "exec: {command: [a]}"}, {"sleep", "sleep: {seconds: 3}"}}.
		turns("lifecycle", func(handler string) string { return ofContainer("lifecycle: {preStop: {" + handler + "}}, ") })...)
	cases = append(cases, members{
		{"value", "value: x"},
		{"nothing", "value: null"},
		{"fieldRef", "valueFrom: {fieldRef: {fieldPath: metadata.name}}"},
		{"secretKeyRef", "valueFrom: {secretKeyRef: {name: a, key: b}}"},
		{"configMapKeyRef", "valueFrom: {configMapKeyRef: {name: a, key: b}}"},
		{"resourceFieldRef", "valueFrom: {resourceFieldRef: {resource: limits.cpu}}"},
	}.turns("env", func(value string) string { return ofContainer("env: [{name: A, " + value + "}], ") })...)
	cases = append(cases, members{{"configMapRef", "configMapRef: {name: a}"}, {"secretRef", "secretRef: {name: a}"}}.
		turns("envFrom", func(ref string) string { return ofContainer("envFrom: [{" + ref + "}], ") })...)
	cases = append(cases, members{{"Localhost", "{type: Localhost, localhostProfile: a}"}, {"RuntimeDefault", "{type: RuntimeDefault}"}}.
		turns("seccompProfile", func(profile string) string { return ofPod("securityContext: {seccompProfile: " + profile + "}, ") })...)
	cases = append(cases, members{{"claim", "resourceClaimName: a"}, {"template", "resourceClaimTemplateName: a"}}.
		turns("resource claim", func(claim string) string { return ofPod("resourceClaims: [{name: r, " + claim + "}], ") })...)
	return append(cases, otherUnions()...)
}

// otherUnions returns the cases for unions outside of pods.
func otherUnions() []upgradeCase {
	port := ", ports: [{port: 80}]"
	cases := members{
		{"ClusterIP", "type: ClusterIP" + port},
		{"headless", "clusterIP: None" + port},
		{"NodePort", "type: NodePort, externalTrafficPolicy: Local" + port},
		{"LoadBalancer", "type: LoadBalancer" + port},
		{"LoadBalancer Local", "type: LoadBalancer, externalTrafficPolicy: Local, loadBalancerSourceRanges: [10.0.0.0/8], allocateLoadBalancerNodePorts: false" + port},
		{"LoadBalancer of a class", "type: LoadBalancer, loadBalancerClass: a.b/c" + port},
		{"ExternalName", "type: ExternalName, externalName: a.example.com"},
		{"ClientIP", "sessionAffinity: ClientIP" + port},
		{"ClientIP with a timeout", "sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 100}}" + port},
		{"no affinity", "sessionAffinity: None" + port},
	}.turns("Service", service)
	metric := func(text string) string { return ", metrics: [{" + text + "}]" }
	cases = append(cases, members{
		{"nothing", ""},
		{"cpu", metric("type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}")},
		{"cpu value", metric("type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: '1'}}")},
		{"pods", metric("type: Pods, pods: {metric: {name: a}, target: {type: AverageValue, averageValue: '1'}}")},
		{"external", metric("type: External, external: {metric: {name: a}, target: {type: Value, value: '1'}}")},
		{"behavior", ", behavior: {scaleDown: {selectPolicy: Disabled}}"},
	}.turns("HorizontalPodAutoscaler", func(more string) string { return autoscaler("v2", more) })...)
	cases = append(cases, members{{"minAvailable", "minAvailable: 1"}, {"maxUnavailable", "maxUnavailable: 50%"}}.turns("PodDisruptionBudget", budget)...)
	cases = append(cases, members{
		{"ingress", "ingress: [{}]"},
		{"egress", "egress: [{}]"},
		{"port range", "ingress: [{ports: [{port: 80, endPort: 90}]}]"},
		{"port name", "ingress: [{ports: [{port: http, protocol: UDP}], from: [{podSelector: {}}]}]"},
		{"address", "ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8}}]}]"},
	}.turns("NetworkPolicy", networkPolicy)...)
	backend := "defaultBackend: {service: {name: a, port: {number: 80}}}"
	cases = append(cases, members{
		{"number", backend},
		{"name", "defaultBackend: {service: {name: a, port: {name: http}}}"},
		{"resource", "defaultBackend: {resource: {kind: A, name: a}}"},
		{"rule", "rules: [{host: a, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}}]"},
		{"TLS", backend + ", tls: [{hosts: [a], secretName: b}]"},
	}.turns("Ingress", ingress)...)
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		cases = append(cases, members{{"service", "clientConfig: {service: {name: a, namespace: b}}"}, {"URL", "clientConfig: {url: 'https://a.example.com'}, objectSelector: {matchLabels: {a: b}}"}}.
			turns(kind, func(more string) string { return webhook(kind, more) })...)
	}
	cases = append(cases, members{{"message", "message: a"}, {"messageExpression", `messageExpression: "'a'"`}}.turns("ValidatingAdmissionPolicy", admissionPolicy)...)
	cases = append(cases, members{{"name", "name: a"}, {"selector", "selector: {matchLabels: {a: b}}"}}.turns("paramRef", policyBinding)...)
	cases = append(cases, members{
		{"None", "conversion: {strategy: None}, "},
		{"Webhook", "conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://a.example.com'}}}, "},
		{"service", "conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: a, namespace: b}}}}, "},
		{"nothing", ""},
	}.turns("conversion", definition)...)
	limited := func(response string) string {
		return "type: Limited, limited: {nominalConcurrencyShares: 1, limitResponse: {" + response + "}}"
	}
	cases = append(cases, members{
		{"queue", limited("type: Queue")},
		{"long queue", limited("type: Queue, queuing: {queues: 4, handSize: 2, queueLengthLimit: 3}")},
		{"reject", limited("type: Reject")},
	}.turns("limitResponse", priorityLevel)...)
	cases = append(cases, members{{"rules", "rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]"}, {"URLs", "rules: [{nonResourceURLs: [/a], verbs: [get]}]"}}.turns("ClusterRole", clusterRole)...)
	cases = append(cases, members{{"ServiceAccount", "kind: ServiceAccount, name: a, namespace: b"}, {"User", "kind: User, name: a"}}.turns("subject", roleBinding)...)
	cases = append(cases, members{{"Retain", "hostPath: {path: /a}"}, {"Delete", "hostPath: {path: /a}, persistentVolumeReclaimPolicy: Delete"}, {"NFS", "nfs: {server: a, path: /a}"}}.turns("PersistentVolume", persistentVolume)...)
	cases = append(cases, members{
		{"nothing", cronJob("", "")},
		{"Indexed", cronJob("completionMode: Indexed, completions: 2, backoffLimitPerIndex: 1, ", "")},
		{"podFailurePolicy", cronJob("podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}]}, ", "")},
		{"volume", cronJob("", "volumes: [{name: v}], ")},
		{"volume with a source", cronJob("", "volumes: [{name: v, secret: {secretName: a}}], ")},
	}.turns("CronJob", func(whole string) string { return whole })...)
	return append(cases, members{{"one", job("suspend: true, ", "i")}, {"two", job("suspend: true, parallelism: 2, ttlSecondsAfterFinished: 4, ", "i")}, {"another image", job("suspend: true, ", "j")}}.
		turns("Job", func(whole string) string { return whole })...)
}
