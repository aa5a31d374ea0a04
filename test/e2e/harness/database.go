package harness

import "k8s.io/apimachinery/pkg/runtime/schema"

// Database is a kind of this repository.
var Database = Kind{schema.GroupVersionKind{Group: "stable.imaginedata.com", Version: "v1", Kind: "Database"}}
