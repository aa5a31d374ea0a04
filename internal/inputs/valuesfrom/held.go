package valuesfrom

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/inputs"
)

func allSecrets(parts []*content) (secrets Secrets) {
	for _, part := range parts {
		secrets = append(secrets, part.secrets...)
	}
	return secrets
}

// replaceHeld keeps the parts of Secrets in the values of a user for as long as messages could
// show them. It keeps the earlier parts instead if the new ones exceed the budget. It requires
// the lock.
func (s *Store) replaceHeld(user types.UID, parts []*content) error {
	before := s.last[user]
	s.release(user)
	refused := s.hold(user, parts, s.budget.Charge)
	if refused.Message == "" {
		return nil
	}
	s.release(user)
	s.hold(user, before, func(item inputs.Item, uid types.UID, bytes int) inputs.Refusal {
		s.budget.Set(item, uid, bytes)
		return inputs.Refusal{}
	})
	return fmt.Errorf("the Secrets among the sources of values are not used, because messages could show them: their content %s", refused.Message)
}

// hold charges each part once, and the list of the user's secrets. It returns the first
// refusal, and requires the lock.
func (s *Store) hold(user types.UID, parts []*content, charge func(inputs.Item, types.UID, int) inputs.Refusal) (refused inputs.Refusal) {
	list := 0
	for _, part := range parts {
		list += len(part.secrets) * perSecret
		if s.holders[part]++; s.holders[part] == 1 && refused.Message == "" {
			refused = charge(heldItem(part, part), "", part.weight())
		}
	}
	if len(parts) > 0 && refused.Message == "" {
		refused = charge(heldItem(user, parts[0]), "", list)
	}
	s.last[user] = parts
	return refused
}

// release requires the lock.
func (s *Store) release(user types.UID) {
	for _, part := range s.last[user] {
		if s.holders[part]--; s.holders[part] == 0 {
			delete(s.holders, part)
			s.budget.Release(heldItem(part, part), "")
		}
		s.budget.Release(heldItem(user, part), "")
	}
	delete(s.last, user)
}

// heldItem returns the item of a part or of the list of a user, in the namespace of a part.
func heldItem(of any, in *content) inputs.Item {
	return inputs.Item{Of: of, NamespacedName: types.NamespacedName{Namespace: in.namespace}}
}
