package soak

// card is an event that affects the world, or one custom resource. do returns a
// description, or "" if the event is not possible now.
type card struct {
	name    string
	times   int
	world   func(*world) string
	subject func(*subject) string
}

var deck = []card{
	{name: "edit", times: 3, subject: (*subject).edit},
	{name: "bad-spec", times: 2, subject: (*subject).editBadly},
	{name: "fixed-spec", times: 2, subject: (*subject).fix},
	{name: "rollback-to-revision", times: 3, subject: (*subject).rollBack},
	{name: "rollback-to-previous", times: 1, subject: (*subject).rollBackToPrevious},
	{name: "rollback-and-edit", times: 2, subject: (*subject).rollBackAndEdit},
	{name: "rollback-none", times: 2, subject: (*subject).resume},
	{name: "rollback-wrong", times: 1, subject: (*subject).rollBackWrongly},
	{name: "ttl-job", times: 2, subject: (*subject).runJob},
	{name: "hook-hangs-then-corrected", times: 2, subject: (*subject).hang},
	{name: "pause", times: 2, subject: (*subject).stopTheClock},
	{name: "unpause", times: 2, subject: (*subject).startTheClock},
	{name: "verify", times: 1, subject: (*subject).verify},
	{name: "clear-status", times: 1, subject: (*subject).clearStatus},
	{name: "delete-dependent", times: 2, subject: (*subject).deleteDependent},
	{name: "edit-dependent", times: 2, subject: (*subject).editDependent},
	{name: "replace-dependent", times: 2, subject: (*subject).replaceDependent},
	{name: "drop-claim", times: 2, subject: (*subject).dropClaim},
	{name: "helm-upgrade", times: 1, subject: (*subject).helmUpgrade},
	{name: "helm-upgrade-long", times: 1, subject: (*subject).helmUpgradeLong},
	{name: "helm-rollback", times: 2, subject: (*subject).helmRollback},
	{name: "helm-uninstall", times: 1, subject: (*subject).helmUninstall},
	{name: "delete-record", times: 1, subject: (*subject).deleteRecord},
	{name: "copy-record", times: 1, subject: (*subject).copyRecord},
	{name: "corrupt-record", times: 1, subject: (*subject).corruptRecord},
	{name: "delete", times: 2, subject: (*subject).remove},
	{name: "delete-namespace", times: 1, world: (*world).deleteNamespace},
	{name: "kill", times: 3, world: (*world).kill},
	{name: "kill-at-write", times: 3, world: (*world).killAtWrite},
	{name: "stop", times: 1, world: (*world).stop},
}

// shuffle returns every card as often as its weight, in an order that depends
// on the seed.
func (w *world) shuffle() []card {
	var cards []card
	for _, card := range deck {
		for range card.times {
			cards = append(cards, card)
		}
	}
	w.rng.Shuffle(len(cards), func(i, j int) { cards[i], cards[j] = cards[j], cards[i] })
	return cards
}
