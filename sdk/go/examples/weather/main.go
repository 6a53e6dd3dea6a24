// Asks another host, with an address and a secret key from the configuration; other plugins may ask it, too.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"pluginhost"
)

func init() {
	pluginhost.Register(pluginhost.Plugin{
		ID:      "weather",
		Name:    "Weather",
		Version: "1.0.0",
		Requirements: []*pluginhost.Requirement{
			pluginhost.HTTP("Asks the weather service for the weather of a place").
				WithConfig(pluginhost.ConfigFields(
					pluginhost.String("service", "Address of the service, like https://api.weather.example; name its host in network.hosts").Required(),
					pluginhost.String("key", "Key of the service").Sensitive(),
				)).
				Build(),
		},
		Functions: map[string]pluginhost.Handler{"temperature": temperature},
		Triggers: []pluginhost.Trigger{{
			Name:        "weather",
			Type:        pluginhost.TriggerHTTP,
			Path:        "/places/:place",
			Methods:     []string{"GET"},
			Description: "Tells the weather of a place",
			Handler:     weather,
		}},
	})
}

// noWeather is why there is no temperature, with the status a caller gets.
type noWeather struct {
	status int
	text   string
}

func (n *noWeather) Error() string { return n.text }

// ask gives the temperature as the service has written it, or a noWeather.
func ask(ctx *pluginhost.Context, place string) (json.Number, error) {
	headers := map[string]string{"accept": "application/json"}
	if key := ctx.Config("key"); key != "" {
		headers["authorization"] = "Bearer " + key
	}
	answer, err := ctx.HTTPRequest(pluginhost.HTTPOrder{
		URL:     ctx.Config("service") + "/current?" + url.Values{"place": {place}}.Encode(),
		Headers: headers,
		Timeout: 3 * time.Second,
	})
	if err != nil {
		ctx.LogError("the weather service: " + err.Error())
		return "", &noWeather{502, "the weather service cannot be asked"}
	}
	if answer.Status == 404 {
		return "", &noWeather{404, "the place is not known"}
	}
	var current struct{ Temperature json.Number }
	if err := json.Unmarshal(answer.Body, &current); answer.Status != 200 || err != nil || current.Temperature == "" {
		return "", &noWeather{502, fmt.Sprintf("the weather service answered %d", answer.Status)}
	}
	return current.Temperature, nil
}

func weather(ctx *pluginhost.Context) error {
	place := ctx.HTTP.Params["place"]
	found, err := ask(ctx, place)
	var none *noWeather
	if errors.As(err, &none) {
		return ctx.JSON(none.status, map[string]string{"error": none.text})
	}
	return ctx.JSON(200, map[string]any{"place": place, "temperature": found})
}

// temperature is for other plugins: {"place": name} -> {"temperature": number}.
func temperature(ctx *pluginhost.Context) error {
	var asked struct{ Place string }
	if err := ctx.Call.Value(&asked); err != nil {
		return err
	}
	found, err := ask(ctx, asked.Place)
	if err != nil {
		return err
	}
	return ctx.Output(map[string]any{"temperature": found})
}

func main() {}
