import { libraryConfig } from '@bufferwise-internal/tsconfig/tsup';

/** Runs in Node only, so it is built by itself: everything else must build without the types of Node. */
const nodeOnly = {
  'events-zmq': 'src/events/zmq/index.ts',
  'file-tier-store': 'src/tiers/stores/file-tier-store.ts',
};
const anywhere = {
  index: 'src/index.ts',
  'opfs-tier-store': 'src/tiers/stores/opfs-tier-store.ts',
  testing: 'src/testing/index.ts',
};

/** In one file, whatever it shares with the others: plugins that import it get nothing else along. */
const light = { outside: 'src/outside/index.ts' };

const { dts, ...scripts } = libraryConfig(anywhere);

export default [
  {
    ...scripts,
    // Types are no load: those of the light part are made with all others.
    dts: { ...(dts as object), entry: { ...anywhere, ...light } },
    clean: Object.keys({ ...nodeOnly, ...light }).map((name) => `!${name}*`),
  },
  { ...libraryConfig(nodeOnly, { types: ['node'] }), clean: false },
  { ...libraryConfig(light), clean: false, splitting: false, dts: false },
];
