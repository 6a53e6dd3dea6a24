import { ConfigFields, Context, HTTP, Json, obj, Plugin, StringField } from "@plugin-host/sdk";

Plugin("weather", "Weather", "1.0.0")
  .Requires(
    HTTP("Asks the weather service for the weather of a place")
      .WithConfig(ConfigFields([
        StringField("service", "Address of the service, like https://api.weather.example; name its host in network.hosts").Required(),
        StringField("key", "Key of the service").Sensitive(),
      ]))
      .Build(),
  )
  .Function("temperature", temperature)
  .HTTP("weather", "/places/:place", ["GET"], weather, "Tells the weather of a place");

function error(ctx: Context, status: i32, text: string): void {
  ctx.JSON(status, obj().str("error", text));
}

class Weather {
  constructor(public status: i32, public text: string, public temperature: Json | null) {}
}

function ask(ctx: Context, place: string): Weather {
  const key = ctx.Config("key");
  const headers = obj().str("accept", "application/json");
  if (key !== null) headers.str("authorization", "Bearer " + key!);
  const asked = ctx.HTTPRequest("GET", ctx.Config("service")! + "/current?place=" + encodeURIComponent(place), headers, new ArrayBuffer(0), 3000);
  if (asked.value === null) {
    ctx.LogError("the weather service: " + asked.error!);
    return new Weather(502, "the weather service cannot be asked", null);
  }
  const answer = asked.value!;
  if (answer.Status == 404) return new Weather(404, "the place is not known", null);
  const found = Json.parseText(answer.Body).get("temperature");
  if (answer.Status != 200 || found.isNull) return new Weather(502, "the weather service answered " + answer.Status.toString(), null);
  return new Weather(200, "", found);
}

function weather(ctx: Context): void {
  const place = ctx.HTTP.Param("place");
  const found = ask(ctx, place);
  if (found.temperature === null) return error(ctx, found.status, found.text);
  ctx.JSON(200, obj().str("place", place).json("temperature", found.temperature!));
}

/** For other plugins: {"place": name} -> {"temperature": number}. */
function temperature(ctx: Context): void {
  const found = ask(ctx, ctx.Call.Value.str("place"));
  if (found.temperature === null) return ctx.Fail(found.text);
  ctx.Output(obj().json("temperature", found.temperature!));
}
