import { type Context, definePlugin, KV, TriggerHTTP, Users } from '@plugin-host/sdk';

definePlugin({
  ID: 'template-plugin',
  Name: 'Template Plugin',
  Version: '0.1.0',
  Requirements: [KV('Counts who was greeted').Build()],
  Triggers: [
    {
      Name: 'greet',
      Type: TriggerHTTP,
      Path: '/greet/:name',
      Methods: ['GET'],
      Description: 'Greets, and counts how often',
      Access: Users('Users may be greeted'),
      Handler: greet,
    },
  ],
});

function greet(ctx: Context): void {
  const name = ctx.HTTP.Params.name ?? 'world';
  const times = ctx.KVIncrement(`greeted:${name}`);
  ctx.JSON(200, { message: `Hello, ${name}!`, times });
}
