import { libraryConfig } from '@bufferwise-internal/tsconfig/tsup';

/** Runs in Node only, so it is built by itself: everything else must build without the types of Node. */
const nodeOnly = { 'tcp-transport': 'src/tcp/index.ts' };

export default [
  {
    ...libraryConfig({ index: 'src/index.ts', 'message-port-transport': 'src/message-port/index.ts' }),
    clean: Object.keys(nodeOnly).map((name) => `!${name}*`),
  },
  { ...libraryConfig(nodeOnly, { types: ['node'] }), clean: false },
];
