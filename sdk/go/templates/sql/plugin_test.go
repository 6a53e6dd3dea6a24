package main

import (
	"testing"

	"pluginhost/plugintest"
)

// Tests have no database; plugin dev has one.
func TestAsksForALogin(t *testing.T) {
	host := plugintest.Start(t, plugintest.Options{})
	if answer := host.HTTP("GET /notes"); answer.Status != 401 {
		t.Error(answer.Status, answer.Failure)
	}
}
