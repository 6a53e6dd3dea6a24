// A command of messengers: a reply with files, those that came with the command too, and a call of another plugin.
package main

import (
	"encoding/json"
	"strings"
	"time"

	"pluginhost"
)

func init() {
	pluginhost.Register(pluginhost.Plugin{
		ID:      "menu",
		Name:    "Canteen menu",
		Version: "1.0.0",
		Requirements: []*pluginhost.Requirement{
			pluginhost.File("Sends the menu as a file, and takes pictures of dishes").
				WithConfig(pluginhost.ConfigFields(
					pluginhost.String("dishes", "Dishes of today, separated by semicolons").Required(),
					pluginhost.String("place", "Where the canteen is, as the plugin weather knows it"),
				)).
				Build(),
			pluginhost.PluginDep("weather", "Tells whether it is warm enough to eat outside").Build(),
		},
		Triggers: []pluginhost.Trigger{{
			Name:        "menu",
			Type:        pluginhost.TriggerMessenger,
			Description: "Shows what the canteen offers today",
			Handler:     menu,
		}},
	})
}

// menu answers the command with the dishes as text and as a file, and the temperature outside.
func menu(ctx *pluginhost.Context) error {
	var text, list strings.Builder
	text.WriteString("Today in the canteen:")
	for dish := range strings.SplitSeq(ctx.Config("dishes"), ";") {
		dish = strings.TrimSpace(dish)
		text.WriteString("\n- " + dish)
		list.WriteString(dish + "\n")
	}
	if temperature := outside(ctx); temperature != "" {
		text.WriteString("\nOutside: " + temperature + " C")
	}
	file, err := ctx.FileStoreWithTTL("menu.txt", "text/plain", "document", []byte(list.String()), time.Hour)
	if err != nil {
		return err
	}
	message := pluginhost.NewMessage(text.String()).File(file, "The menu")
	for _, picture := range ctx.Files() {
		message.File(picture, "Thank you for the picture")
	}
	return ctx.Reply(message)
}

// outside gives the temperature; empty when the plugin weather cannot tell it.
func outside(ctx *pluginhost.Context) string {
	place := ctx.Config("place")
	if place == "" {
		return ""
	}
	var answer struct{ Temperature json.Number }
	err := ctx.CallPluginInto("weather", "temperature", map[string]string{"place": place}, &answer)
	if err != nil {
		ctx.LogError("weather: " + err.Error())
	}
	return answer.Temperature.String()
}

func main() {}
