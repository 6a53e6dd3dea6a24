package main

import (
	"testing"

	"pluginhost/plugintest"
)

func TestCountsTheLinesOfAFile(t *testing.T) {
	host := plugintest.Start(t, plugintest.Options{})
	id := host.AddFile(plugintest.File{Name: "poem.txt", Bytes: []byte("one\ntwo\nthree")})
	answer := host.HTTP("POST /lines", plugintest.As{User: 7, Body: map[string]string{"file_id": id}})
	if answer.Text() != `{"lines":3,"name":"poem.txt"}` {
		t.Error(answer.Status, answer.Text(), answer.Failure)
	}
}

func TestAFileThatIsNotThereIs404(t *testing.T) {
	host := plugintest.Start(t, plugintest.Options{})
	if answer := host.HTTP("POST /lines", plugintest.As{Body: `{"file_id": "0"}`}); answer.Status != 404 {
		t.Error(answer.Status, answer.Failure)
	}
}
