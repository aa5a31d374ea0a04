package inventory

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// Inventory is what an operator knows of the objects that it has made.
type Inventory struct {
	*Index
	*Watches
}

// Forget drops what is known of an owner that is gone.
func (i Inventory) Forget(owner types.UID) {
	i.Index.Forget(owner)
	// To need nothing begins no watch, so that it neither waits nor fails.
	_ = i.Need(context.Background(), owner, "", nil)
}
