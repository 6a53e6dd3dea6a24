package main

import (
	"strings"
	"testing"

	"pluginhost/plugintest"
)

func TestGreetsAndCounts(t *testing.T) {
	host := plugintest.Start(t, plugintest.Options{})
	host.HTTP("GET /greet/Ada", plugintest.As{User: 7})
	answer := host.HTTP("GET /greet/Ada", plugintest.As{User: 7})
	var greeting struct {
		Message string
		Times   int
	}
	if err := answer.JSON(&greeting); err != nil || answer.Status != 200 {
		t.Fatal(answer.Status, answer.Failure, err)
	}
	if greeting.Message != "Hello, Ada!" || greeting.Times != 2 {
		t.Error(answer.Text())
	}
	if times, _ := host.KV("greeted:Ada"); times != "2" {
		t.Errorf("stored: %q", times)
	}
}

func TestCountsNothingWithoutThePermission(t *testing.T) {
	host := plugintest.Start(t, plugintest.Options{})
	answer := host.HTTP("GET /greet/Ada", plugintest.As{Grant: []string{}})
	if !strings.Contains(answer.Failure, "permission denied") {
		t.Error(answer.Status, answer.Failure)
	}
}
