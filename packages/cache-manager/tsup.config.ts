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

export default [
  { ...libraryConfig(anywhere), clean: Object.keys(nodeOnly).map((name) => `!${name}*`) },
  { ...libraryConfig(nodeOnly, { types: ['node'] }), clean: false },
];
