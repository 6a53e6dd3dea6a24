import { type Context, definePlugin, Public, TriggerHTTP } from '@plugin-host/sdk';

/** Two triggers of one handler, without any permission: it answers with what the request brought along. */
definePlugin({
  ID: 'hello',
  Name: 'Hello',
  Version: '1.0.0',
  Triggers: [
    {
      Name: 'greet',
      Type: TriggerHTTP,
      Path: '/greet',
      Methods: ['GET', 'POST'],
      Description: 'Greets and echoes what the request brought along',
      Access: Public('It shows nothing but what the caller sent'),
      Handler: greet,
    },
    {
      Name: 'greet_name',
      Type: TriggerHTTP,
      Path: '/greet/:name',
      Methods: ['GET'],
      Description: 'Greets the name in the path',
      Access: Public('It shows nothing but what the caller sent'),
      Handler: greet,
    },
  ],
});

function greet(ctx: Context): void {
  const { Auth, Body, Method, Params, Path, Query } = ctx.HTTP;
  ctx.JSON(200, {
    message: `Hello, ${Params.name || Query.name || 'world'}!`,
    method: Method,
    path: Path,
    query: Query,
    body: Method === 'POST' ? Body : '',
    principal: Auth && { kind: Auth.Kind, user_id: Auth.UserID ?? 0, service_key_id: Auth.ServiceKeyID ?? 0 },
  });
}
