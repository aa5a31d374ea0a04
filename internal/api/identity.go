package api

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Identity returns the part of an object's metadata that a cache needs in any case. Tenants
// can write the other fields, whose size is only limited by that of a request. A cache of
// all objects of a kind must therefore not keep them.
func Identity(m *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   m.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion},
	}
}
