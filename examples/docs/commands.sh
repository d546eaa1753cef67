# #region commands
npm start    # sets up, then shows the main job: a project with secrets, opened for an agent
npm test     # sets up, then runs every check and test
# #endregion
