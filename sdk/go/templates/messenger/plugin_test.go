package main

import (
	"testing"

	"pluginhost/plugintest"
)

func TestRepliesWithTheMenuOfTheDay(t *testing.T) {
	host := plugintest.Start(t, plugintest.Options{})
	replied := host.Message("/menu tomorrow", plugintest.As{User: 7})
	if replied.Failure != "" || len(replied.Replies) != 1 {
		t.Fatal(replied.Failure, replied.Replies)
	}
	if text := replied.Replies[0].Text; text != "Here is the menu of tomorrow." {
		t.Error(text)
	}
	if files := host.Files(); len(files) != 1 || files[0].Name != "menu.txt" {
		t.Error(files)
	}
}
