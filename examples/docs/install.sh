# #region npm
npm run pack                                                    # here: makes .cache/pack/*.tgz and .cache/pack/optional/*.tgz
npm install --prefix ../my-project .cache/pack/*.tgz            # the command line, the engine and the SDK
npm install --prefix ../my-project .cache/pack/optional/*.tgz   # when you want it: the agent layer, with agentfense mcp
# #endregion
# #region pip
pip install ./python                                            # in an environment of yours
# #endregion
