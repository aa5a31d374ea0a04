package inventory

// Inventory is what an operator knows of the objects that it has made.
type Inventory struct {
	*Index
	*Watches
}
