import { definePlugin } from '@plugin-host/sdk';

/** What the conformance plugin calls. */
definePlugin({
  ID: 'target',
  Name: 'Target',
  Version: '1.0.0',
  Triggers: [],
  Functions: {
    double: ctx => ctx.Output({ doubled: Number(ctx.Call.Value) * 2, from: ctx.Call.From }),
    same: ctx => ctx.Output(ctx.Call.Value),
    reverse: ctx => ctx.OutputBytes(ctx.Call.Bytes.reverse()),
    silent() {},
    refuse() {
      throw new Error('refused by its author');
    },
  },
});
