import { libraryConfig } from '@bufferwise-internal/tsconfig/tsup';

/** Run in Node, or have parts that do, so they are built by themselves: everything else must build without the types of Node. */
const nodeOnly = { 'tcp-transport': 'src/tcp/index.ts', 'websocket-transport': 'src/websocket/index.ts' };

export default [
  {
    ...libraryConfig({
      index: 'src/index.ts',
      'message-port-transport': 'src/message-port/index.ts',
      'nats-control': 'src/control/index.ts',
    }),
    clean: Object.keys(nodeOnly).map((name) => `!${name}*`),
  },
  { ...libraryConfig(nodeOnly, { types: ['node'] }), clean: false },
];
