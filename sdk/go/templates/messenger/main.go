package main

import "pluginhost"

func init() {
	pluginhost.Register(pluginhost.Plugin{
		ID:           "template-plugin",
		Name:         "Template Plugin",
		Version:      "0.1.0",
		Requirements: []*pluginhost.Requirement{pluginhost.File("Sends the menu as a file").Build()},
		Triggers: []pluginhost.Trigger{{
			Name:        "menu",
			Type:        pluginhost.TriggerMessenger,
			Description: "The menu of a day",
			Handler:     menu,
		}},
	})
}

func menu(ctx *pluginhost.Context) error {
	day := "today"
	if len(ctx.Message.Args) > 0 {
		day = ctx.Message.Args[0]
	}
	file, err := ctx.FileStore("menu.txt", "text/plain", "document", []byte("Menu of "+day+": soup"))
	if err != nil {
		return err
	}
	return ctx.Reply(pluginhost.NewMessage("Here is the menu of "+day+".").File(file, "Menu"))
}

func main() {}
