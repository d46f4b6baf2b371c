package randomuser

import "slices"

// actions are all actions of a user. deck contains each as often as its weight says.
var actions = slices.Concat(loopActions, connActions, stageActions, coActions, engineActions, packetActions)

var deck []action

func init() {
	for _, a := range actions {
		for range a.weight {
			deck = append(deck, a)
		}
	}
}
