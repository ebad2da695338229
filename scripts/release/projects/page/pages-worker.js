import '@bufferwise/adapter-connectors/opfs-worker';
