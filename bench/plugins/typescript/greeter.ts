import { type Context, definePlugin, KV, TriggerHTTP } from '@plugin-host/sdk';

/** The greeter of the benchmark in TypeScript: JSON in, JSON out. */

definePlugin({
  ID: 'greeter-typescript',
  Name: 'Greeter (TypeScript)',
  Version: '1.0.0',
  Requirements: [KV('Counts visits').Build()],
  Triggers: [
    { Name: 'greet', Type: TriggerHTTP, Path: '/greet', Methods: ['GET'], Handler: greet },
    { Name: 'visit', Type: TriggerHTTP, Path: '/visit', Methods: ['GET'], Handler: visit },
    { Name: 'draw', Type: TriggerHTTP, Path: '/draw', Methods: ['GET'], Handler: draw },
  ],
});

const messageFor = (ctx: Context): string => `Hello, ${ctx.HTTP.Query.name ?? 'world'}!`;

function greet(ctx: Context): void {
  ctx.JSON(200, { message: messageFor(ctx) });
}

function visit(ctx: Context): void {
  const key = `visits:${ctx.HTTP.Query.name ?? 'world'}`;
  const visits = Number(ctx.KVGet(key) ?? '0') + 1;
  ctx.KVSet(key, String(visits));
  ctx.JSON(200, { message: messageFor(ctx), visits });
}

function draw(ctx: Context): void {
  ctx.JSON(200, { message: messageFor(ctx), numbers: [0, 0].map(() => Math.floor(Math.random() * 2 ** 53)) });
}
