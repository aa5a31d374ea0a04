package health

import (
	"slices"
	"sync"
)

// table is the table of well-known kinds. The first entry that matches a kind counts.
var table = slices.Concat(kubernetes, delivery, networks, databases, platforms)

// byGroup returns the indexes of the entries of each group.
var byGroup = sync.OnceValue(func() map[string][]int {
	groups := map[string][]int{}
	for i, e := range table {
		groups[e.group] = append(groups[e.group], i)
	}
	return groups
})

// kubernetes are kinds of Kubernetes and its subprojects that kstatus does not know.
var kubernetes = []entry{
	{product: "Kubernetes", group: "", kinds: []string{"ConfigMap", "Secret", "ServiceAccount", "Namespace", "Endpoints", "LimitRange", "ResourceQuota", "PodTemplate"}, always: true},
	{product: "Kubernetes", group: "", kinds: []string{"ReplicationController"}, equal: [][2]string{{"spec.replicas", "status.readyReplicas"}}},
	{product: "Kubernetes", group: "", kinds: []string{"PersistentVolume"}, words: []word{{path: "status.phase", ready: []string{"Available", "Bound", "Released"}, failed: []string{"Failed"}, message: "status.message"}}},
	{product: "Kubernetes", group: "apps", kinds: []string{"ControllerRevision"}, always: true},
	{product: "Kubernetes", group: "batch", kinds: []string{"CronJob"}, always: true},
	{product: "Kubernetes", group: "autoscaling", kinds: []string{"HorizontalPodAutoscaler"}, notFalse: []string{"AbleToScale"}},
	{product: "Kubernetes", group: "apiregistration.k8s.io", kinds: []string{"APIService"}, ready: []string{"Available"}},
	// Many controllers never report the address of an Ingress.
	{product: "Kubernetes", group: "networking.k8s.io", kinds: []string{"Ingress", "IngressClass", "NetworkPolicy"}, always: true},
	{product: "Kubernetes", group: "discovery.k8s.io", kinds: []string{"EndpointSlice"}, always: true},
	{product: "Kubernetes", group: "rbac.authorization.k8s.io", kinds: []string{"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}, always: true},
	{product: "Kubernetes", group: "scheduling.k8s.io", kinds: []string{"PriorityClass"}, always: true},
	{product: "Kubernetes", group: "flowcontrol.apiserver.k8s.io", kinds: []string{"FlowSchema", "PriorityLevelConfiguration"}, always: true},
	{product: "Kubernetes", group: "storage.k8s.io", kinds: []string{"StorageClass", "CSIDriver", "VolumeAttributesClass"}, always: true},
	{product: "Kubernetes", group: "resource.k8s.io", kinds: []string{"ResourceClaim", "ResourceClaimTemplate", "DeviceClass"}, always: true},
	{product: "Kubernetes", group: "node.k8s.io", kinds: []string{"RuntimeClass"}, always: true},
	{product: "Kubernetes", group: "coordination.k8s.io", kinds: []string{"Lease"}, always: true},
	{product: "Kubernetes", group: "admissionregistration.k8s.io", kinds: []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}, always: true},
	{product: "Kubernetes", group: "autoscaling.k8s.io", kinds: []string{"VerticalPodAutoscaler"}, always: true},
	{product: "Volume snapshots", group: "snapshot.storage.k8s.io", kinds: []string{"VolumeSnapshot", "VolumeSnapshotContent"}, words: []word{{path: "status.readyToUse", ready: []string{"True"}, message: "status.error.message"}}},
	{product: "Volume snapshots", group: "snapshot.storage.k8s.io", kinds: []string{"VolumeSnapshotClass"}, always: true},
}

// delivery are kinds that deliver or build applications.
var delivery = []entry{
	{product: "Argo Rollouts", group: "argoproj.io", kinds: []string{"Rollout"}, suspended: []field{{"spec.paused", "true"}}, failed: []conditionMatch{{"InvalidSpec", "True", ""}}, words: []word{{path: "status.phase", ready: []string{"Healthy"}, failed: []string{"Degraded"}, waiting: []string{"Paused"}, message: "status.message"}}},
	{product: "Argo Workflows", group: "argoproj.io", kinds: []string{"Workflow"}, suspended: []field{{"spec.suspend", "true"}}, words: []word{{path: "status.phase", ready: []string{"Succeeded"}, failed: []string{"Failed", "Error"}, message: "status.message"}}},
	{product: "Argo CD", group: "argoproj.io", kinds: []string{"Application"}, words: []word{{path: "status.health.status", ready: []string{"Healthy", "Suspended"}, message: "status.health.message"}}},
	{product: "Argo", group: "argoproj.io", kinds: []string{"AppProject", "WorkflowTemplate", "ClusterWorkflowTemplate", "CronWorkflow", "AnalysisTemplate", "ClusterAnalysisTemplate"}, always: true},
	{product: "Flux", group: "source.toolkit.fluxcd.io", kinds: []string{"HelmRepository"}, stored: &field{"spec.type", "oci"}, suspended: []field{{"spec.suspend", "true"}}, failed: []conditionMatch{{"Stalled", "True", ""}}, ready: []string{"Ready"}},
	{product: "Flux", group: "source.toolkit.fluxcd.io", kinds: []string{"GitRepository", "OCIRepository", "Bucket", "HelmChart", "ExternalArtifact"}, suspended: []field{{"spec.suspend", "true"}}, failed: []conditionMatch{{"Stalled", "True", ""}}, ready: []string{"Ready"}},
	{product: "Flux", group: "helm.toolkit.fluxcd.io", kinds: []string{"HelmRelease"}, suspended: []field{{"spec.suspend", "true"}}, failed: []conditionMatch{{"Stalled", "True", ""}}, ready: []string{"Ready"}},
	{product: "Flux", group: "kustomize.toolkit.fluxcd.io", kinds: []string{"Kustomization"}, suspended: []field{{"spec.suspend", "true"}}, failed: []conditionMatch{{"Stalled", "True", ""}}, ready: []string{"Ready"}},
	{product: "Tekton", group: "tekton.dev", kinds: []string{"PipelineRun", "TaskRun", "CustomRun"}, suspended: []field{{"spec.status", "PipelineRunPending"}}, failed: []conditionMatch{{"Succeeded", "False", ""}}, ready: []string{"Succeeded"}},
	{product: "Tekton", group: "tekton.dev", kinds: []string{"Pipeline", "Task", "ClusterTask"}, always: true},
	{product: "Tekton", group: "triggers.tekton.dev", kinds: []string{"Trigger", "TriggerBinding", "ClusterTriggerBinding", "TriggerTemplate", "Interceptor"}, always: true},
}

// networks are kinds of networks, certificates and secrets.
var networks = []entry{
	{product: "cert-manager", group: "cert-manager.io", kinds: []string{"Certificate"}, failed: []conditionMatch{{"Issuing", "False", "Failed"}}, ready: []string{"Ready"}},
	{product: "cert-manager", group: "cert-manager.io", kinds: []string{"Issuer", "ClusterIssuer"}, ready: []string{"Ready"}},
	{product: "cert-manager", group: "cert-manager.io", kinds: []string{"CertificateRequest"}, failed: []conditionMatch{{"Denied", "True", ""}, {"InvalidRequest", "True", ""}, {"Ready", "False", "Failed"}}, ready: []string{"Ready"}},
	{product: "Gateway API", group: "gateway.networking.k8s.io", kinds: []string{"Gateway"}, ready: []string{"Accepted", "Programmed"}},
	{product: "Gateway API", group: "gateway.networking.k8s.io", kinds: []string{"GatewayClass"}, ready: []string{"Accepted"}},
	{product: "Gateway API", group: "gateway.networking.k8s.io", kinds: []string{"HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"}, each: "status.parents", ready: []string{"Accepted", "ResolvedRefs"}},
	{product: "Gateway API", group: "gateway.networking.k8s.io", kinds: []string{"BackendTLSPolicy"}, each: "status.ancestors", ready: []string{"Accepted"}},
	{product: "Gateway API", group: "gateway.networking.k8s.io", kinds: []string{"ReferenceGrant"}, always: true},
	{product: "External Secrets", group: "external-secrets.io", kinds: []string{"ExternalSecret", "ClusterExternalSecret", "SecretStore", "ClusterSecretStore", "PushSecret"}, ready: []string{"Ready"}},
	{product: "Sealed Secrets", group: "bitnami.com", kinds: []string{"SealedSecret"}, ready: []string{"Synced"}},
	{product: "Istio", group: "networking.istio.io", always: true},
	{product: "Istio", group: "security.istio.io", always: true},
	{product: "Istio", group: "telemetry.istio.io", always: true},
	{product: "Cilium", group: "cilium.io", kinds: []string{"CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy"}, always: true},
}

// databases are kinds of databases and message brokers.
var databases = []entry{
	{
		product: "CloudNativePG", group: "postgresql.cnpg.io", kinds: []string{"Cluster"}, paused: []conditionMatch{{"cnpg.io/hibernation", "True", ""}},
		words: []word{{
			path: "status.phase", ready: []string{"Cluster in healthy state"}, failed: []string{"Cluster is unrecoverable and needs manual intervention"},
			waiting: []string{"Waiting for user action"}, message: "status.phaseReason",
		}},
		equal: [][2]string{{"spec.instances", "status.readyInstances"}},
	},
	{product: "CloudNativePG", group: "postgresql.cnpg.io", kinds: []string{"Pooler"}, equal: [][2]string{{"spec.instances", "status.instances"}}},
	{product: "CloudNativePG", group: "postgresql.cnpg.io", kinds: []string{"Backup"}, words: []word{{path: "status.phase", ready: []string{"completed"}, failed: []string{"failed"}, message: "status.error"}}},
	{product: "CloudNativePG", group: "postgresql.cnpg.io", kinds: []string{"Database", "Publication", "Subscription"}, words: []word{{path: "status.applied", ready: []string{"True"}, message: "status.message"}}},
	{product: "CloudNativePG", group: "postgresql.cnpg.io", kinds: []string{"ScheduledBackup", "ImageCatalog", "ClusterImageCatalog"}, always: true},
	{product: "Elastic Cloud on Kubernetes", group: "elasticsearch.k8s.elastic.co", kinds: []string{"Elasticsearch"}, words: []word{{path: "status.phase", ready: []string{"Ready"}, failed: []string{"Invalid"}}, {path: "status.health", ready: []string{"green", "yellow"}}}},
	{product: "Elastic Cloud on Kubernetes", group: "*.k8s.elastic.co", kinds: []string{"Kibana", "ApmServer", "EnterpriseSearch", "Agent", "Beat", "Logstash", "ElasticMapsServer"}, words: []word{{path: "status.health", ready: []string{"green"}}}},
	{product: "MongoDB Community", group: "mongodbcommunity.mongodb.com", kinds: []string{"MongoDBCommunity"}, words: []word{{path: "status.phase", ready: []string{"Running"}, failed: []string{"Failed"}, message: "status.message"}}, equal: [][2]string{{"spec.members", "status.currentMongoDBMembers"}}},
	{product: "MongoDB Enterprise", group: "mongodb.com", kinds: []string{"MongoDB", "MongoDBMultiCluster", "MongoDBUser", "MongoDBOpsManager"}, words: []word{{path: "status.phase", ready: []string{"Running", "Updated"}, failed: []string{"Failed"}, message: "status.message"}}},
	{product: "Percona", group: "psmdb.percona.com", kinds: []string{"PerconaServerMongoDB"}, suspended: []field{{"spec.pause", "true"}}, words: []word{{path: "status.state", ready: []string{"ready"}, message: "status.message"}}},
	{product: "Percona", group: "pxc.percona.com", kinds: []string{"PerconaXtraDBCluster"}, suspended: []field{{"spec.pause", "true"}}, words: []word{{path: "status.state", ready: []string{"ready"}}}},
	{product: "Percona", group: "pgv2.percona.com", kinds: []string{"PerconaPGCluster"}, suspended: []field{{"spec.pause", "true"}}, words: []word{{path: "status.state", ready: []string{"ready"}}}},
	{product: "RabbitMQ", group: "rabbitmq.com", kinds: []string{"RabbitmqCluster"}, ready: []string{"ReconcileSuccess", "AllReplicasReady", "ClusterAvailable"}},
	{product: "RabbitMQ", group: "rabbitmq.com", ready: []string{"Ready"}},
	{product: "Redis (OT-Container-Kit)", group: "redis.redis.opstreelabs.in", kinds: []string{"RedisCluster"}, words: []word{{path: "status.state", ready: []string{"Ready"}, failed: []string{"Failed"}, message: "status.reason"}}},
	{product: "Redis (OT-Container-Kit)", group: "redis.redis.opstreelabs.in", kinds: []string{"RedisReplication"}, set: []string{"status.masterNode"}},
	{product: "Redis (OT-Container-Kit)", group: "redis.redis.opstreelabs.in", kinds: []string{"Redis", "RedisSentinel"}, always: true},
	{product: "Redis (Spotahome)", group: "databases.spotahome.com", kinds: []string{"RedisFailover"}, words: []word{{path: "status.state", ready: []string{"Healthy"}, message: "status.message"}}},
	{product: "Redis Enterprise", group: "app.redislabs.com", kinds: []string{"RedisEnterpriseCluster"}, words: []word{{path: "status.state", ready: []string{"Running"}}}},
	{product: "Redis Enterprise", group: "app.redislabs.com", kinds: []string{"RedisEnterpriseDatabase"}, words: []word{{path: "status.status", ready: []string{"active"}, failed: []string{"creation-failed"}}}},
	{product: "Dragonfly", group: "dragonflydb.io", kinds: []string{"Dragonfly"}, words: []word{{path: "status.phase", ready: []string{"ready"}}}},
	{product: "Strimzi", group: "kafka.strimzi.io", kinds: []string{"Kafka", "KafkaConnect", "KafkaConnector", "KafkaMirrorMaker", "KafkaMirrorMaker2", "KafkaBridge", "KafkaTopic", "KafkaUser"}, paused: []conditionMatch{{"ReconciliationPaused", "True", ""}}, failed: []conditionMatch{{"NotReady", "True", "InvalidResourceException"}, {"NotReady", "True", "InvalidConfigurationException"}}, ready: []string{"Ready"}},
	{product: "Strimzi", group: "kafka.strimzi.io", kinds: []string{"KafkaNodePool", "KafkaRebalance"}, always: true},
	{product: "Strimzi", group: "core.strimzi.io", kinds: []string{"StrimziPodSet"}, equal: [][2]string{{"status.pods", "status.readyPods"}}},
}

// platforms are kinds of monitoring, serverless and infrastructure.
var platforms = []entry{
	{product: "Prometheus Operator", group: "monitoring.coreos.com", kinds: []string{"Prometheus", "PrometheusAgent", "Alertmanager", "ThanosRuler"}, suspended: []field{{"spec.paused", "true"}}, ready: []string{"Reconciled", "Available"}},
	{product: "Prometheus Operator", group: "monitoring.coreos.com", kinds: []string{"ServiceMonitor", "PodMonitor", "Probe", "PrometheusRule", "ScrapeConfig", "AlertmanagerConfig"}, always: true},
	{product: "VictoriaMetrics", group: "operator.victoriametrics.com", kinds: []string{"VMSingle", "VMCluster", "VMAgent", "VMAlert", "VMAlertmanager", "VMAuth", "VLogs"}, suspended: []field{{"spec.paused", "true"}}, words: []word{{path: "status.updateStatus", ready: []string{"operational"}, failed: []string{"failed"}, message: "status.reason"}}},
	{product: "KEDA", group: "keda.sh", kinds: []string{"ScaledObject", "ScaledJob"}, paused: []conditionMatch{{"Paused", "True", ""}}, ready: []string{"Ready"}},
	{product: "KEDA", group: "keda.sh", kinds: []string{"TriggerAuthentication", "ClusterTriggerAuthentication"}, always: true},
	{product: "Knative Serving", group: "serving.knative.dev", kinds: []string{"Service", "Configuration", "Revision"}, failed: []conditionMatch{{"Ready", "False", ""}}, ready: []string{"Ready"}},
	{product: "Knative", group: "*.knative.dev", ready: []string{"Ready"}},
	{product: "Crossplane", group: "pkg.crossplane.io", kinds: []string{"Provider", "Configuration", "Function"}, ready: []string{"Installed", "Healthy"}},
	{product: "Crossplane", group: "pkg.crossplane.io", kinds: []string{"DeploymentRuntimeConfig", "ControllerConfig", "ImageConfig"}, always: true},
	{product: "Crossplane", group: "apiextensions.crossplane.io", kinds: []string{"CompositeResourceDefinition"}, ready: []string{"Established"}},
	{product: "Crossplane", group: "apiextensions.crossplane.io", kinds: []string{"Composition", "CompositionRevision", "EnvironmentConfig"}, always: true},
	{product: "Crossplane", group: "pkg.crossplane.io", notFalse: []string{"Healthy"}},
	{product: "Crossplane", group: "apiextensions.crossplane.io", notFalse: []string{"Synced", "Ready"}},
	{product: "Crossplane", group: "protection.crossplane.io", notFalse: []string{"Ready"}},
	{product: "Crossplane", group: "ops.crossplane.io", notFalse: []string{"Synced", "Succeeded"}},
	{product: "Crossplane", group: "*.crossplane.io", kinds: []string{"ProviderConfig", "ClusterProviderConfig", "ProviderConfigUsage", "StoreConfig"}, always: true},
	{product: "Crossplane", group: "*.upbound.io", kinds: []string{"ProviderConfig", "ClusterProviderConfig", "ProviderConfigUsage", "StoreConfig"}, always: true},
	{product: "Crossplane managed resources", group: "*.crossplane.io", paused: []conditionMatch{{"Synced", "False", "ReconcilePaused"}}, ready: []string{"Synced", "Ready"}},
	{product: "Crossplane managed resources", group: "*.upbound.io", paused: []conditionMatch{{"Synced", "False", "ReconcilePaused"}}, ready: []string{"Synced", "Ready"}},
}
