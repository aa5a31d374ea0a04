package guard

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
)

// StatefulSet is the kind whose objects are guarded only if they have claim templates.
var StatefulSet = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}

// builtIn holds the guarded kinds, with the effect of a deletion.
var builtIn = map[schema.GroupKind]string{
	{Kind: "PersistentVolumeClaim"}: "its volume may be deleted with it",
	{Kind: "PersistentVolume"}:      "its data may become inaccessible",
	{Kind: "Namespace"}:             "everything in it is deleted with it",
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: "all custom resources of its kind are deleted with it",
	{Group: "postgresql.cnpg.io", Kind: "Cluster"}:                    database,
	{Group: "elasticsearch.k8s.elastic.co", Kind: "Elasticsearch"}:    database,
	{Group: "mongodbcommunity.mongodb.com", Kind: "MongoDBCommunity"}: database,
	{Group: "mongodb.com", Kind: "MongoDB"}:                           database,
	{Group: "mongodb.com", Kind: "MongoDBMultiCluster"}:               database,
	{Group: "psmdb.percona.com", Kind: "PerconaServerMongoDB"}:        database,
	{Group: "pxc.percona.com", Kind: "PerconaXtraDBCluster"}:          database,
	{Group: "pgv2.percona.com", Kind: "PerconaPGCluster"}:             database,
	{Group: "rabbitmq.com", Kind: "RabbitmqCluster"}:                  database,
	{Group: "redis.redis.opstreelabs.in", Kind: "Redis"}:              database,
	{Group: "redis.redis.opstreelabs.in", Kind: "RedisCluster"}:       database,
	{Group: "redis.redis.opstreelabs.in", Kind: "RedisReplication"}:   database,
	{Group: "databases.spotahome.com", Kind: "RedisFailover"}:         database,
	{Group: "app.redislabs.com", Kind: "RedisEnterpriseCluster"}:      database,
	{Group: "app.redislabs.com", Kind: "RedisEnterpriseDatabase"}:     database,
	{Group: "dragonflydb.io", Kind: "Dragonfly"}:                      database,
	{Group: "kafka.strimzi.io", Kind: "Kafka"}:                        database,
	{Group: "kafka.strimzi.io", Kind: "KafkaNodePool"}:                database,
	{Group: "kafka.strimzi.io", Kind: "KafkaTopic"}:                   database,
	{Group: "core.strimzi.io", Kind: "StrimziPodSet"}:                 database,
}

// Reasons.
const (
	database = "its operator may delete the data with it"
	claims   = "its claims lose their owner, and a new name does not use them"
	// Protected is the reason of an object with the annotation api.AnnotationProtect.
	Protected   = "the annotation " + api.AnnotationProtect + " protects it"
	namedByKind = "guard.kinds in the watches file names its kind"
)

// Rules determine which objects are guarded. The zero value has the built-in kinds.
type Rules struct {
	// Kinds are further guarded kinds.
	Kinds sets.Set[schema.GroupKind]
}

// Kind returns why every object of a kind is guarded, empty if the kind is not guarded.
func (r Rules) Kind(kind schema.GroupKind) string {
	if why := builtIn[kind]; why != "" {
		return why
	}
	if r.Kinds.Has(kind) {
		return namedByKind
	}
	return ""
}

// Reason returns why the deletion of an object needs an approval, empty if it needs none.
// The content of a StatefulSet shows whether it has claim templates.
func (r Rules) Reason(object *unstructured.Unstructured) string {
	kind := object.GroupVersionKind().GroupKind()
	switch why := r.Kind(kind); {
	case apply.IsProtected(object):
		return Protected
	case why != "":
		return why
	case kind == StatefulSet && hasClaimTemplates(object):
		return claims
	}
	return ""
}

func hasClaimTemplates(set *unstructured.Unstructured) bool {
	templates, _, _ := unstructured.NestedFieldNoCopy(set.Object, "spec", "volumeClaimTemplates")
	list, _ := templates.([]any)
	return len(list) > 0
}

// ScalingReason returns why a change of a StatefulSet deletes claims, empty if it does not: pods
// are removed by fewer replicas or a higher first ordinal, and
// persistentVolumeClaimRetentionPolicy.whenScaled is Delete. A policy of others stays if the new
// content sets none.
func ScalingReason(live, wanted *unstructured.Unstructured) string {
	policy := whenScaled(wanted)
	if policy == "" {
		policy = whenScaled(live)
	}
	if !HasClaims(wanted) || policy != "Delete" {
		return ""
	}
	from, to := number(live, 1, "replicas"), number(wanted, 1, "replicas")
	first, next := number(live, 0, "ordinals", "start"), number(wanted, 0, "ordinals", "start")
	change := fmt.Sprintf("%d replicas instead of %d", to, from)
	switch {
	case from == 0, next <= first && next+to >= first+from:
		return ""
	case next != first:
		change = fmt.Sprintf("%d replicas from ordinal %d instead of %d from ordinal %d", to, next, from, first)
	}
	return change + ", and persistentVolumeClaimRetentionPolicy.whenScaled is Delete"
}

func whenScaled(set *unstructured.Unstructured) string {
	policy, _, _ := unstructured.NestedString(set.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled")
	return policy
}

// HasClaims reports whether an object is a StatefulSet with claim templates.
func HasClaims(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == StatefulSet && hasClaimTemplates(object)
}

// number returns the number in a field of the spec, or the default.
func number(set *unstructured.Unstructured, absent int64, field ...string) int64 {
	value, _, _ := unstructured.NestedFieldNoCopy(set.Object, append([]string{"spec"}, field...)...)
	switch number := value.(type) {
	case int64:
		return number
	case float64:
		return int64(number)
	}
	return absent
}
