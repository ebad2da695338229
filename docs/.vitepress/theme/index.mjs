import DefaultTheme from 'vitepress/theme';
import { h } from 'vue';
import hero from './hero.svg?raw';
import './style.css';

/** VitePress's own theme, in our colours, with a drawing of three requests on one beginning beside the title. */
export default {
  extends: DefaultTheme,
  Layout: () =>
    h(DefaultTheme.Layout, null, {
      'home-hero-image': () => h('div', { class: 'hero-drawing drawing', innerHTML: hero }),
    }),
};
