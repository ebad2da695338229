import { render } from 'preact';
import { start } from './state/actions.ts';
import { App } from './view/app.tsx';
import { applyTheme } from './view/theme.ts';
import './style/index.css';

applyTheme();
const root = document.getElementById('app');
if (root !== null) render(<App />, root);
start();
